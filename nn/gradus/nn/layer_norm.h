#pragma once

#include <gradus/nn/module.h>

namespace gradus::nn {

/// y = weight (x - mean) / sqrt(var + eps) + bias over the last axis (Ba et al. 2016). 
/// x [..., n] -> [..., n]; weight [n] starts at 1, bias [n] at 0.
struct LayerNorm {
  Parameter weight, bias;
  double eps;

  explicit LayerNorm(int64_t n, double eps = 1e-5, Caller caller = Caller::current());
  Var operator()(const Input& x) const;
  void params(ParamVisitor& visit) {
    visit("weight", weight);
    visit("bias", bias);
  }
};

}  // namespace gradus::nn
