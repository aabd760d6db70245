#pragma once

#include <cstdint>

namespace gradus::kernels {

/// sum_i x_i^2 in double, for the global gradient norm. Same order, hence same bits, at each call.
template <class T>
double sum_squares(const T* x, int64_t n);

struct AdamStep {
  double lr, beta1, beta2, eps;
  double correction1;  ///< 1 - beta1^t
  double correction2;  ///< 1 - beta2^t
  double grad_scale = 1;  ///< the clipping factor, applied while the gradient is read
  double weight_decay = 0;  ///< L2 term added to the gradient, as torch.optim.Adam(weight_decay=...)
  double shrink = 0;        ///< p becomes (1 - shrink) p first: AdamW's lr times weight decay
};

/// Kingma & Ba 2015, eps outside the root. An entry whose gradients were all 0 does not move (but for
/// `shrink`).
///   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  p -= lr (m / c1) / (sqrt(v / c2) + eps)
template <class T>
void adam(const AdamStep& step, const T* g, T* p, T* m, T* v, int64_t n);

}  // namespace gradus::kernels
