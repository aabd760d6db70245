#pragma once

#include <gradus/nn/attention/attention.h>

namespace gradus::nn {

/// Xu et al. 2015, section 4.1, "stochastic hard attention": the context is one annotation, not a mean of them.
///   p = softmax(scores / temperature)      in training: position z drawn from p      otherwise: z = argmax p
///   context = annotation_z                 log_probability = log p_z, in training
/// Scores are those of another attention (`score` of the options; bahdanau by default), parameters: score.*
/// Choosing has no gradient; what scores learn comes from log_probability, see `reinforce`. With memory.given
/// the drawn position is the largest of the given row, in training or not: for tests, and to follow a path.
struct HardAttention : BorrowingAttention {
  HardAttention(const AttentionSizes& sizes, const RngInput& rng)
      : BorrowingAttention(sizes, "bahdanau", rng) {}
  /// The weights are 1 at the position that was chosen.
  Attended step(const Input&, const AttentionMemory&, const AttentionState&) const override;
};

/// The score-function estimator (Williams 1992, "REINFORCE"), as a term for the loss. log_probability [T, B] is
/// that of the positions drawn, costs [T, B] the loss of each target word, real u8 [T, B] 0 at padding. Returns
/// the scalar
///   sum_tb R_tb log_probability_tb,  R_tb = sum over real t' >= t of (cost_t'b - baseline), a constant.
/// Its gradient is an unbiased estimate of the gradient, through the draws, of the expected sum of costs. Costs
/// before t are left out because a position drawn at t cannot change them. A baseline that does not depend on
/// the draws changes only the variance.
Var reinforce(const Input& log_probability, const Tensor& costs, const Tensor& real, double baseline);
/// The same for a loss that is a mean over real words, of which there are some, and counts `weight` times: a
/// gradient, and no value.
Var reinforce_term(const Input& log_probability, const Tensor& costs, const Tensor& real, double baseline,
                   double weight);

}  // namespace gradus::nn
