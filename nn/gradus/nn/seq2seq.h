#pragma once

#include <memory>
#include <string>

#include <gradus/nn/decoder.h>
#include <gradus/nn/encoder.h>
#include <gradus/nn/linear.h>
#include <gradus/ops/cross_entropy.h>

namespace gradus::nn {

/// The ids that every vocabulary begins with: <unk> <pad> <s> </s>.
enum SpecialId : int32_t { kUnk = 0, kPad = 1, kBos = 2, kEos = 3 };

/// Sentence pairs as padded ids, time-major.
struct Seq2SeqBatch {
  Tensor source;          ///< i32 [S, B], each ends with </s>, then padding
  Tensor source_lengths;  ///< i32 [B], </s> counted
  Tensor target_in;       ///< i32 [T, B], <s> first: what the decoder is fed
  Tensor target_out;      ///< i32 [T, B], </s> last: what it should say
  int64_t target_tokens = 0;  ///< real entries of target_out
};

struct Seq2SeqConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t embedding_dim = 128, hidden_size = 128;
  int64_t attention_size = 0;       ///< 0: hidden_size
  int64_t num_layers = 1;           ///< of the encoder
  bool bidirectional = true;
  std::string attention = "bahdanau";  ///< a name make_attention knows, or "none"
  std::string decoder = "auto";     ///< "bahdanau" or "luong" order; auto: Luong's for dot, general and concat
  bool input_feeding = true;        ///< of the Luong order
  double dropout = 0;
};

/// Encoder, decoder, output layer: the translator's model.
struct Seq2Seq {
  Seq2SeqConfig config;
  Encoder encoder;
  std::unique_ptr<Decoder> decoder;
  Linear output;  ///< logits = W readout + b, [.., V]

  /// @throws Error for an unknown attention or decoder.
  Seq2Seq(const Seq2SeqConfig& config, Rng& rng);
  /// Teacher-forced cross-entropy over the real target words; logits exist for those only.
  /// `weight` multiplies loss and gradient, for a shard of a larger batch.
  CrossEntropy loss(const Seq2SeqBatch& batch, double label_smoothing = 0, double weight = 1) const;
  /// Teacher-forced alignment weights [T, B, S]; undefined without attention.
  Tensor align(const Seq2SeqBatch& batch) const;
  void params(ParamVisitor& visit);
};

}  // namespace gradus::nn
