#pragma once

// What exercises are composed of.

#include <gradus/numeric.h>
#include <gradus/ops.h>

#include <numeric>
#include <vector>

namespace lens {

using In = std::vector<gradus::Var>;

inline gradus::Var cut(const gradus::Var& x) { return gradus::stop_gradient(x); }

/// y's value with another function's gradients.
inline gradus::Var with_gradient_of(const gradus::Var& y, const gradus::Var& other) {
  return other - cut(other) + cut(y);
}

inline gradus::Var mean_loss(const In& in, gradus::CrossEntropyOptions options = {}) {
  return gradus::cross_entropy(in[0], in[1].value(), options).loss;
}

/// One row of a softmax and of its gradient, n numbers each.
struct SoftmaxRow {
  const double *x, *y, *dy;
  int64_t n;
  double along(const double* weights) const { return std::inner_product(weights, weights + n, dy, 0.0); }
  double mix() const { return along(y); }
};

/// Softmax over the last axis with a backward of one's own: dx_k of a row.
inline gradus::Var softmax_with(const gradus::Var& x, double (*dx_k)(const SoftmaxRow& row, int64_t k)) {
  gradus::Tensor y = gradus::softmax(x).value();
  auto backward = [x = x.value(), y, dx_k](const gradus::Tensor& dy, gradus::Grads& grads) {
    gradus::Tensor dx = gradus::Tensor::zeros(y.shape(), gradus::DType::f64);
    for (int64_t i = 0, n = y.size(-1); i < y.numel(); i += n)
      for (int64_t k = 0; k < n; ++k) dx.f64()[i + k] = dx_k({x.f64() + i, y.f64() + i, dy.f64() + i, n}, k);
    grads.add(0, dx);
  };
  return gradus::record("softmax", {x}, y, backward);
}

}  // namespace lens
