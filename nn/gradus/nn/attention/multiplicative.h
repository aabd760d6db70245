#pragma once

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/linear.h>

namespace gradus::nn {

/// Luong et al. 2015, "dot": e = query . annotation; needs Q = D. No parameters.
struct DotAttention : Attention {
  /// @throws Error when query and annotation differ in size.
  explicit DotAttention(const AttentionSizes& sizes);
  AttentionMemory prepare(const Var& annotations, const Tensor& mask) const override;
  AttentionStep step(const Var& query, const AttentionMemory& memory) const override;
  void params(ParamVisitor&) override {}
  bool is_multiplicative() const override { return true; }
};

/// Luong et al. 2015, "general": e = query^T W annotation. Parameter: weight = W [Q, D].
struct GeneralAttention : Attention {
  Linear key;

  explicit GeneralAttention(const AttentionSizes& sizes, Rng& rng);
  AttentionMemory prepare(const Var& annotations, const Tensor& mask) const override;
  AttentionStep step(const Var& query, const AttentionMemory& memory) const override;
  void params(ParamVisitor& visit) override;
  bool is_multiplicative() const override { return true; }
};

}  // namespace gradus::nn
