#pragma once

#include <vector>

#include <gradus/autograd.h>
#include <gradus/nn/incremental.h>

namespace gradus::nn {

struct SearchOptions {
  int64_t beam_size = 1;      ///< 1: greedy
  /// Alpha of Wu et al. 2016: score = log p / ((5 + n) / 6)^alpha, n counts </s>; 0 = off.
  double length_penalty = 1;
  int64_t max_length = 0;     ///< target words at most; 0: twice the source length plus 10
  bool weights = false;       ///< keep the alignment weights
  bool scores = true;         ///< false: a greedy search need not work out probabilities; they stay 0
  ThreadPool* pool = nullptr;  ///< threads to share the work among; null: the caller's alone
  int32_t pad = kPad, bos = kBos,
          eos = kEos;  ///< never produced; begins a target; ends one (-1: nothing does)
};

/// Target words at most, for a source of so many words.
int64_t max_target_length(int64_t source_length, const SearchOptions& options);

/// One translation.
struct Hypothesis {
  std::vector<int32_t> tokens;  ///< without <s> and </s>
  double log_probability = 0;   ///< sum over tokens and </s>, nats
  double score = 0;             ///< length-normalised, what hypotheses are ranked by
  bool finished = false;        ///< false when max_length cut it off
  /// One row per token, one more for </s> if finished: weights over the S positions of the padded source.
  std::vector<std::vector<float>> weights;
};

/// Beam search, batched over sentences and hypotheses; nothing is recorded. Source ids i32 [S, B], lengths i32
/// [B]. Returns up to beam_size hypotheses per sentence, best first, in the order of the sentences. A finished
/// hypothesis leaves the beam; a sentence is done when beam_size of them have finished. With a pool, each
/// thread takes some of the sentences, or a part of each product when they are few; the result is the same.
/// @throws Error "[translate] beam_size must be at least 1: 0".
std::vector<std::vector<Hypothesis>> translate(const Generator& generator, const Input& source,
                                               const Tensor& lengths, const SearchOptions& options = {});
/// The same for a single batch; for many, keep the generator.
std::vector<std::vector<Hypothesis>> translate(const Generative& model, const Input& source,
                                               const Tensor& lengths, const SearchOptions& options = {});

/// The search alone, over a decoder that was started with options.beam_size rows per sentence. lengths i32 [B]
/// are what the limit on target words is worked out from.
/// @throws Error as translate.
std::vector<std::vector<Hypothesis>> search(IncrementalDecoder& decoder, const Tensor& lengths,
                                            const SearchOptions& options = {});

}  // namespace gradus::nn
