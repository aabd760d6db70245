#pragma once

#include <gradus/nn/data_parallel.h>
#include <gradus/nn/incremental.h>
#include <gradus/nn/module.h>
#include <gradus/ops/cross_entropy.h>

namespace gradus::nn {

/// Sentence pairs as padded ids, time-major.
struct Seq2SeqBatch {
  /// i32 [S, B], each ends with </s>, then padding
  Tensor source;
  /// i32 [B], </s> counted
  Tensor source_lengths;
  /// i32 [T, B], <s> first: what the decoder is fed
  Tensor target_in;
  /// i32 [T, B], </s> last: what it should say
  Tensor target_out;
  /// Real entries of target_out
  int64_t target_tokens = 0;
  /// [T, B, S] where words look: for oracle attention, or to guide one; undefined: none.
  Tensor alignment = {};
};

struct LossOptions {
  double label_smoothing = 0;
  /// Multiplies loss and gradient, for a shard of a larger batch
  double weight = 1;
  /// How much attention weights count that do not look where batch.alignment says; see guided_alignment. 0:
  /// they do not.
  double guided_alignment = 0;
  /// What a word is expected to cost, nats, such as a moving average of batches before: for hard attention,
  /// which learns by REINFORCE. The loss's value stays the cross-entropy.
  double baseline = 0;
};

/// What training, evaluation and search ask of a translator's network, whatever is inside. A module.
class TranslationModel : public Generative {
 public:
  /// Teacher-forced cross-entropy over the real target words, plus `extra`; logits exist for those only.
  CrossEntropy loss(const Seq2SeqBatch& batch, const LossOptions& options = {}) const;
  /// What each target word costs under teacher forcing, nats, [T, B]; 0 at padding. Holds all logits at once.
  Tensor word_losses(const Seq2SeqBatch& batch) const;
  /// The input of the output layer and the target of each row, for parallel_output_gradients. Rows are in
  /// the order of target_out: all T B of them, or those of real steps. `extra` is what guided alignment costs,
  /// or of hard attention 0 with the gradient of REINFORCE.
  virtual ShardOutput hidden_states(const Seq2SeqBatch& batch, const LossOptions& options = {}) const = 0;
  /// The layer behind them, and which target is padding.
  virtual OutputLayer output_layer() const = 0;
  /// Teacher-forced alignment weights [T, B, S]; undefined without attention.
  virtual Tensor align(const Seq2SeqBatch& batch) const = 0;
  /// Whether there are alignment weights.
  virtual bool attends() const = 0;
  virtual void params(ParamVisitor& visit) = 0;

 protected:
  /// What each word of target_out [T, B] costs, nats, as a constant; 0 at padding.
  Tensor word_costs(const ShardOutput& states, const Tensor& target_out, double label_smoothing) const;
};

}  // namespace gradus::nn
