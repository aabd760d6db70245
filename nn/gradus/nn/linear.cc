#include <gradus/nn/linear.h>

#include <cmath>

#include <gradus/nn/check.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {

Linear::Linear(int64_t in_features, int64_t out_features, const RngInput& rng, const LinearOptions& options) {
  At at(rng.caller());
  must_be_positive("Linear", "in_features", in_features);
  must_be_positive("Linear", "out_features", out_features);
  double a = 1 / std::sqrt(static_cast<double>(in_features));
  weight = Parameter(Tensor::uniform({out_features, in_features}, -a, a, rng), "weight");
  if (options.bias) bias = Parameter(Tensor::uniform({out_features}, -a, a, rng), "bias");
}

Var Linear::operator()(const Input& x) const { return linear(x, weight, bias); }

WeightPart::WeightPart(const Parameter& w) {
  if (w.defined()) weight = &w, row1 = w.shape()[0], col1 = w.shape()[1];
}

WeightPart WeightPart::of_rows(const Parameter& w, int64_t begin, int64_t end) {
  WeightPart part(w);
  part.row0 = begin, part.row1 = end;
  return part;
}

WeightPart WeightPart::of_columns(const Parameter& w, int64_t begin, int64_t end) {
  WeightPart part(w);
  part.col0 = begin, part.col1 = end;
  return part;
}

Var WeightPart::var() const {
  Var part = *weight;
  if (rows() < weight->shape()[0]) part = slice(part, 0, row0, row1);
  if (columns() < weight->shape()[1]) part = slice(part, 1, col0, col1);
  return part;
}

}  // namespace gradus::nn
