#pragma once

#include <gradus/autograd.h>

namespace gradus {

struct CrossEntropyOptions {
  int32_t ignore_index = -100;   ///< targets equal to it are padding: no loss, no gradient
  double label_smoothing = 0;    ///< q = (1 - s) onehot + s / V over all V classes (PyTorch's convention)
};

/// Sums over the counted (not ignored) targets; divide by `tokens` for means.
struct CrossEntropy {
  Var loss;            ///< scalar, MEAN over counted targets of the smoothed loss, nats; 0 when nothing counts
  double nll = 0;      ///< SUM over counted targets of the unsmoothed loss, nats: perplexity = exp(nll / tokens)
  int64_t tokens = 0;  ///< counted targets
};

/// logits [..., V], targets i32 [...]. Softmax, loss and gradient in one pass.
CrossEntropy cross_entropy(const Var& logits, const Tensor& targets, const CrossEntropyOptions& options = {});

}  // namespace gradus
