#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// How a loss puts its terms together. PyTorch's names; batchmean is kl_div's alone.
enum class Reduction { mean, sum, none, batchmean };

struct CrossEntropyOptions {
  /// Targets equal to it are padding: no loss, no gradient.
  int32_t ignore_index = -100;
  /// s in [0, 1): q = (1 - s) onehot + s / V over ALL V classes, PyTorch's convention and that of Szegedy et
  /// al. 2016. Two others are about, whose losses do not compare: s / (V - 1) over the other classes, and
  /// s / (V - 2) over the others without padding (as KL divergence, so that the minimum is 0).
  double label_smoothing = 0;
  /// Multiplies loss and gradient, not nll: a shard's share of its batch.
  double weight = 1;
  /// Mean over counted targets, sum, or none: one loss for each target.
  Reduction reduction = Reduction::mean;
};

/// Sums over the counted (not ignored) targets; divide by `tokens` for means.
struct CrossEntropy {
  /// Smoothed loss in nats: the MEAN over counted targets (0 when there are none) unless `reduction` asks for
  /// the sum or for none, which is [...], 0 where ignored.
  Var loss;
  /// SUM over counted targets of the unsmoothed loss, nats: perplexity = exp(nll / tokens).
  double nll = 0;
  /// Counted targets.
  int64_t tokens = 0;
};

/// logits [..., V], targets i32 [...]. Softmax, loss and gradient in one pass.
///   p = softmax(logits_n)      q_n = (1 - s) onehot(target_n) + s / V      (Szegedy et al. 2016, section 7)
///   loss = - 1/tokens sum_n q_n . log p_n      dlogits_n = dloss (p_n - q_n) / tokens, 0 where ignored
/// The gradient is worked out in the forward pass, when one is wanted, and takes the place of p.
/// @throws Error "[cross_entropy] targets must be in 0 .. 9: 12",
/// "[cross_entropy] targets must have the logits' shape without the last axis: logits [6, 10], targets [5]".
CrossEntropy cross_entropy(const Input& logits, const Tensor& targets,
                           const CrossEntropyOptions& options = {});

/// What the sum of the losses is multiplied by. @throws Error in the name of `op` for batchmean.
double cross_entropy_scale(const char* op, int64_t tokens, const CrossEntropyOptions& options);

/// How many targets count. @throws Error as cross_entropy, in the name of `op`.
int64_t count_targets(const char* op, const Tensor& targets, int64_t V, const CrossEntropyOptions& options);

}  // namespace gradus
