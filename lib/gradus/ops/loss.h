#pragma once

#include <gradus/autograd.h>
#include <gradus/ops/cross_entropy.h>

// Losses besides cross_entropy, under PyTorch's names and with its conventions. Input and target of the
// pointwise ones must have exactly one shape: stretching a target [N] over an input [N, 1] is the classic way
// to train on nonsense. Gradients below are those of the sum; `mean` divides them by the number of terms.
//
// @throws Error "[mse_loss] input and target must have one shape: input [4, 1], target [4]",
// "[mse_loss] element types must agree: f32 and f64", "[mse_loss] batchmean is for kl_div only".

namespace gradus {

/// l = (x - t)^2      dx = 2 (x - t)      dt = -2 (x - t)
Var mse_loss(const Input& input, const Var& target, Reduction reduction = Reduction::mean);

struct BCEWithLogitsOptions {
  Reduction reduction = Reduction::mean;
  /// Factor on the positive part: more than 1 for rare positives.
  double pos_weight = 1;
};

/// Targets in [0, 1]; s = sigmoid(x). No overflow at either end: ln(1 + e^-x) is taken as a whole.
///   l = -(w t ln s + (1 - t) ln(1 - s)) = (1 - t) x + (1 + (w - 1) t) ln(1 + e^-x),   w = pos_weight
///   dx = (1 - t) - (1 + (w - 1) t) (1 - s)      dt = -x + (w - 1) ln(1 + e^-x)
Var binary_cross_entropy_with_logits(const Input& input, const Var& target,
                                     const BCEWithLogitsOptions& options = {});

struct KLDivOptions {
  /// As torch.nn.functional.kl_div: `mean` divides by the number of elements, which is not the divergence of
  /// any pair of distributions; `batchmean` divides by the first axis and is what the formula means.
  Reduction reduction = Reduction::mean;
  /// The target holds log probabilities too.
  bool log_target = false;
};

/// Kullback-Leibler divergence KL(t || e^x): input x holds LOG probabilities, target t probabilities.
///   l = t (ln t - x), 0 where t = 0      dx = -t      dt = ln t + 1 - x, 0 where t = 0
///   with log_target: l = e^t (t - x)     dx = -e^t    dt = e^t (t - x + 1)
Var kl_div(const Input& input, const Var& target, const KLDivOptions& options = {});

struct NLLOptions {
  /// The mean is over counted targets, each counting as much as its weight.
  Reduction reduction = Reduction::mean;
  /// Targets equal to it: no loss, no gradient.
  int32_t ignore_index = -100;
  /// [C], one factor per class; undefined: 1.
  Tensor weight = {};
};

/// log_probs [..., C], targets i32 [...]: the loss of a log_softmax. Classes LAST (PyTorch: the second axis).
///   l_n = -w_target x_n,target      dx_n = -w_target at the target, 0 elsewhere
/// `none` gives [...], 0 where ignored. With nothing counted the mean is 0 (PyTorch: NaN).
/// @throws Error as cross_entropy, and "[nll_loss] weight must be [C]: weight [3], log_probs [2, 4]".
Var nll_loss(const Input& log_probs, const Tensor& targets, const NLLOptions& options = {});

}  // namespace gradus
