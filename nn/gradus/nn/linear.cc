#include <gradus/nn/linear.h>

#include <cmath>

#include <gradus/nn/check.h>
#include <gradus/ops/matmul.h>

namespace gradus::nn {

Linear::Linear(int64_t in_features, int64_t out_features, Rng& rng, const LinearOptions& options,
               Caller caller) {
  At at(caller);
  must_be_positive("Linear", "in_features", in_features);
  must_be_positive("Linear", "out_features", out_features);
  double a = 1 / std::sqrt(static_cast<double>(in_features));
  weight = Parameter(Tensor::uniform({out_features, in_features}, -a, a, rng), "weight");
  if (options.bias) bias = Parameter(Tensor::uniform({out_features}, -a, a, rng), "bias");
}

Var Linear::operator()(const Input& x) const {
  At at(x.caller());
  return linear(x, weight, bias);
}

void Linear::params(ParamVisitor& visit) {
  visit("weight", weight);
  visit("bias", bias);
}

}  // namespace gradus::nn
