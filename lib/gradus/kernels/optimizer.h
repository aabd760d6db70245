#pragma once

#include <cstdint>

namespace gradus::kernels {

/// sum_i x_i^2 in double, for the global gradient norm. Same order, hence same bits, at each call.
template <class T>
double sum_squares(const T* x, int64_t n);

struct AdamStep {
  double lr, beta1, beta2, eps;
  /// 1 - beta1^t, 1 - beta2^t
  double correction1, correction2;
  /// the clipping factor, applied while the gradient is read
  double grad_scale = 1;
  /// L2 term added to the gradient, as torch.optim.Adam(weight_decay=...)
  double weight_decay = 0;
  /// p becomes (1 - shrink) p first: AdamW's lr times weight decay
  double shrink = 0;
};

/// Kingma & Ba 2015, eps outside the root. An entry whose gradients were all 0 does not move, but for `shrink`.
///   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  p -= lr (m / c1) / (sqrt(v / c2) + eps)
template <class T>
void adam(const AdamStep& step, const T* g, T* p, T* m, T* v, int64_t n);

// One step of the rarer optimisers on n elements of a parameter p with gradient g. All are PyTorch's forms,
// and all begin with  g = grad_scale g + weight_decay p.

struct UpdateStep {
  double lr;
  /// as AdamStep's
  double grad_scale = 1, weight_decay = 0;
};

struct SgdRule {
  double momentum = 0, dampening = 0;
  bool nesterov = false;
  /// u starts as g, undamped
  bool first = false;
};
/// u = momentum u + (1 - dampening) g;  p -= lr u, Nesterov: p -= lr (g + momentum u). u is null without
/// momentum: p -= lr g.
template <class T>
void sgd(const UpdateStep& step, const SgdRule& rule, const T* g, T* p, T* u, int64_t n);

/// sum += g^2;  p -= lr g / (sqrt(sum) + eps)
template <class T>
void adagrad(const UpdateStep& step, double eps, const T* g, T* p, T* sum, int64_t n);

struct RmspropRule {
  double alpha, eps, momentum = 0;
};
/// v = alpha v + (1 - alpha) g^2;  m likewise of g, or null: not centered;
/// d = g / (sqrt(v - m^2) + eps);  u = momentum u + d, or null;  p -= lr u (lr d)
template <class T>
void rmsprop(const UpdateStep& step, const RmspropRule& rule, const T* g, T* p, T* v, T* m, T* u, int64_t n);

struct AdadeltaRule {
  double rho, eps;
};
/// v = rho v + (1 - rho) g^2;  d = g sqrt(a + eps) / sqrt(v + eps);  a = rho a + (1 - rho) d^2;  p -= lr d
template <class T>
void adadelta(const UpdateStep& step, const AdadeltaRule& rule, const T* g, T* p, T* v, T* a, int64_t n);

/// average += (1 - decay) (x - average)
template <class T>
void move_average(double decay, const T* x, T* average, int64_t n);

}  // namespace gradus::kernels
