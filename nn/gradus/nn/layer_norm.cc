#include <gradus/nn/layer_norm.h>

#include <gradus/nn/check.h>
#include <gradus/ops/layer_norm.h>

namespace gradus::nn {

LayerNorm::LayerNorm(int64_t n, double epsilon, Caller caller) : eps(epsilon) {
  At at(caller);
  must_be_positive("LayerNorm", "n", n);
  weight = Parameter(Tensor::ones({n}), "weight");
  bias = Parameter(Tensor::zeros({n}), "bias");
}

Var LayerNorm::operator()(const Input& x) const {
  At at(x.caller());
  return layer_norm(x, weight, bias, eps);
}

}  // namespace gradus::nn
