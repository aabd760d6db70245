#pragma once

#include <gradus/nn/check.h>
#include <gradus/nn/module.h>
#include <gradus/ops/layer_norm.h>

namespace gradus::nn {

/// y = weight (x - mean) / sqrt(var + eps) + bias over the last axis (Ba et al. 2016).
/// x [..., n] -> [..., n]; weight [n] starts at 1, bias [n] at 0.
struct LayerNorm {
  Parameter weight, bias;
  double eps;

  explicit LayerNorm(int64_t n, double epsilon = 1e-5, Caller caller = Caller::current()) : eps(epsilon) {
    At at(caller);
    must_be_positive("LayerNorm", "n", n);
    must_not_be_negative("LayerNorm", "eps", eps);
    weight = Parameter(Tensor::ones({n}), "weight");
    bias = Parameter(Tensor::zeros({n}), "bias");
  }
  Var operator()(const Input& x) const { return layer_norm(x, weight, bias, eps); }
  void params(ParamVisitor& visit) {
    visit("weight", weight);
    visit("bias", bias);
  }
};

}  // namespace gradus::nn
