#pragma once

#include <gradus/nn/data_parallel.h>
#include <gradus/nn/incremental.h>
#include <gradus/nn/module.h>
#include <gradus/ops/cross_entropy.h>

namespace gradus::nn {

/// Sentence pairs as padded ids, time-major.
struct Seq2SeqBatch {
  Tensor source;              ///< i32 [S, B], each ends with </s>, then padding
  Tensor source_lengths;      ///< i32 [B], </s> counted
  Tensor target_in;           ///< i32 [T, B], <s> first: what the decoder is fed
  Tensor target_out;          ///< i32 [T, B], </s> last: what it should say
  int64_t target_tokens = 0;  ///< real entries of target_out
  Tensor alignment = {};      ///< [T, B, S] weights from outside, for oracle attention; undefined: none
};

/// What training, evaluation and search ask of a translator's network, whatever is inside. A module.
class TranslationModel : public Generative {
 public:
  /// Teacher-forced cross-entropy over the real target words; logits exist for those only.
  /// `weight` multiplies loss and gradient, for a shard of a larger batch; `baseline` is for models that draw
  /// (see Seq2Seq).
  virtual CrossEntropy loss(const Seq2SeqBatch& batch, double label_smoothing = 0, double weight = 1,
                            double baseline = 0, Caller caller = Caller::current()) const = 0;
  /// The same up to the output layer, which is then the caller's, so that shards of a batch can share it
  /// (parallel_output_gradients). `weight` and `baseline` are for the gradient of what a model drew, its `extra`.
  virtual ShardOutput before_output(const Seq2SeqBatch& batch, double label_smoothing = 0, double weight = 1,
                                    double baseline = 0, Caller caller = Caller::current()) const = 0;
  /// The layer behind it, and which target is padding.
  virtual OutputLayer output_layer() const = 0;
  /// Teacher-forced alignment weights [T, B, S]; undefined without attention.
  virtual Tensor align(const Seq2SeqBatch& batch, Caller caller = Caller::current()) const = 0;
  /// What each target word costs under teacher forcing, nats, [T, B]; 0 at padding. Holds all the batch's logits at once.
  virtual Tensor word_losses(const Seq2SeqBatch& batch, Caller caller = Caller::current()) const = 0;
  /// Whether there are alignment weights.
  virtual bool attends() const = 0;
  virtual void params(ParamVisitor& visit) = 0;
};

}  // namespace gradus::nn
