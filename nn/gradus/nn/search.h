#pragma once

#include <vector>

#include <gradus/nn/seq2seq.h>

namespace gradus::nn {

struct SearchOptions {
  int64_t beam_size = 1;      ///< 1: greedy
  double length_penalty = 1;  ///< alpha of Wu et al. 2016: score = log p / ((5 + n) / 6)^alpha, n counts </s>; 0 = off
  int64_t max_length = 0;     ///< target words at most; 0: twice the source length plus 10
  bool weights = false;       ///< keep the alignment weights
};

/// One translation.
struct Hypothesis {
  std::vector<int32_t> tokens;  ///< without <s> and </s>
  double log_probability = 0;   ///< sum over tokens and </s>, nats
  double score = 0;             ///< length-normalised, what hypotheses are ranked by
  bool finished = false;        ///< false when max_length cut it off
  /// One row per token, one more for </s> if finished: weights over the S positions of the padded source.
  std::vector<std::vector<float>> weights;
};

/// Beam search, batched over sentences and hypotheses; nothing is recorded. Source ids i32 [S, B], lengths i32 [B].
/// Returns up to beam_size hypotheses per sentence, best first. A finished hypothesis leaves the beam; a sentence is done
/// when beam_size of them have finished. <pad> and <s> are never produced.
std::vector<std::vector<Hypothesis>> translate(const Seq2Seq& model, const Tensor& source, const Tensor& lengths,
                                               const SearchOptions& options = {});

}  // namespace gradus::nn
