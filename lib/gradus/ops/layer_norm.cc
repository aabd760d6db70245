#include <gradus/ops/layer_norm.h>

#include <gradus/kernels/layer_norm.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/reduce.h>

namespace gradus {

namespace reference {
namespace {

Var layer_norm(const Var& x, const Var& gamma, const Var& beta, double eps) {
  ReduceOptions rows{.axes = {-1}, .keep_dims = true};
  Var centred = x - mean(x, rows);
  Var variance = mean(centred * centred, rows);
  return gamma * (centred / sqrt(variance + eps)) + beta;
}

}  // namespace
}  // namespace reference

Var layer_norm(const Input& x, const Var& gamma, const Var& beta, double eps) {
  At at(x.caller());
  if (x.dims() == 0 || gamma.shape() != Shape{x.size(-1)} || beta.shape() != gamma.shape())
    refuse("layer_norm", "gamma and beta must be [n] for input [..., n]: input {}, gamma {}, beta {}",
           x.shape(), gamma.shape(), beta.shape());
  if (gamma.dtype() != x.dtype() || beta.dtype() != x.dtype())
    refuse("layer_norm", "element types must agree: input {}, gamma {}, beta {}", x.dtype(), gamma.dtype(),
           beta.dtype());
  int64_t n = x.size(-1), rows = n == 0 ? 0 : x.numel() / n;
  Tensor y(x.shape(), x.dtype()), stats({rows, 2}, x.dtype());
  with_type(x.dtype(), "layer_norm", [&]<class T>(T) {
    kernels::layer_norm(rows, n, data<T>(x.value()), n, data<T>(gamma.value()), data<T>(beta.value()),
                        static_cast<T>(eps), false, data<T>(y), n, data<T>(stats));
  });
  auto back = [=, x = x.value(), gamma = gamma.value()]<class T>(T, const Tensor& dy, Grads& dx) {
    Tensor dgamma = into_or_zeros(dx, 1, {n}, x.dtype()), dbeta = into_or_zeros(dx, 2, {n}, x.dtype());
    Tensor d(x.shape(), x.dtype());
    kernels::layer_norm_backward(rows, n, data<T>(x), n, data<T>(gamma), data<T>(stats), data<T>(dy), n,
                                 false, data<T>(d), n, data<T>(dgamma), data<T>(dbeta));
    dx.add(0, d);
  };
  return record_typed("layer_norm", {x, gamma, beta}, y, std::move(back));
}

GRADUS_OP_CASES(
    {"layer_norm", {{3, 5}, {5}, {5}}, calls(layer_norm, kLayerNormEps),
     calls(reference::layer_norm, kLayerNormEps)},
    {"layer_norm: three axes, large eps", {{2, 2, 4}, {4}, {4}}, calls(layer_norm, 0.5),
     calls(reference::layer_norm, 0.5)},
    {"layer_norm: one vector", {{6}, {6}, {6}}, calls(layer_norm, kLayerNormEps),
     calls(reference::layer_norm, kLayerNormEps)});

}  // namespace gradus
