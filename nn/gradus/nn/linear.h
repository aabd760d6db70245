#pragma once

#include <gradus/nn/module.h>
#include <gradus/random.h>

namespace gradus::nn {

struct LinearOptions {
  bool bias = true;
};

/// y = x W^T + b. x [..., in_features] -> [..., out_features]. weight [out, in], bias [out]; both start from
/// U(-1/sqrt(in), 1/sqrt(in)), as torch.nn.Linear.
struct Linear {
  /// `bias` is undefined without one
  Parameter weight, bias;

  Linear(int64_t in_features, int64_t out_features, const RngInput& rng, const LinearOptions& options = {});
  Var operator()(const Input& x) const;
  void params(ParamVisitor& visit) {
    visit("weight", weight);
    visit("bias", bias);
  }
};

/// A rectangle of a weight, or none: the rows and columns that one part of an input meets, where a layer's
/// weight is applied to several parts side by side. Refers to the weight.
struct WeightPart {
  const Parameter* weight = nullptr;
  /// Rows row0 .. row1 - 1, columns col0 .. col1 - 1
  int64_t row0 = 0, row1 = 0, col0 = 0, col1 = 0;

  WeightPart() = default;
  /// All of it; none of an undefined one.
  WeightPart(const Parameter& weight);
  static WeightPart of_rows(const Parameter& weight, int64_t begin, int64_t end);
  static WeightPart of_columns(const Parameter& weight, int64_t begin, int64_t end);

  bool defined() const { return weight != nullptr; }
  int64_t rows() const { return row1 - row0; }
  int64_t columns() const { return col1 - col0; }
  /// [rows(), columns()]: the weight itself, or a slice of it.
  Var var() const;
};

}  // namespace gradus::nn
