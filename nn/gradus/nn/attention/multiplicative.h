#pragma once

#include <gradus/nn/attention/formed.h>

namespace gradus::nn {

/// Luong et al. 2015, "dot": e = query . annotation; needs Q = D. No parameters.
struct DotAttention : FormedAttention {
  double scale;

  /// @throws Error when query and annotation differ in size.
  explicit DotAttention(const AttentionSizes& sizes, double factor = 1);
  DotAttention(const AttentionSizes& sizes, const RngInput&)
      : DotAttention(sizes, 1) {}
  ScoreForm form() const override { return {ScoreForm::Kind::dot, {}, {}, {}, scale}; }
};

/// Vaswani et al. 2017, section 3.2.1: e = query . annotation / sqrt(D), which keeps the scores of long vectors
/// out of the flat ends of the softmax; needs Q = D. No parameters.
struct ScaledDotAttention : DotAttention {
  ScaledDotAttention(const AttentionSizes& sizes, const RngInput&);
};

/// Luong et al. 2015, "general": e = query^T W annotation. Parameter: key.weight = W [Q, D].
struct GeneralAttention : FormedAttention {
  Linear key;

  GeneralAttention(const AttentionSizes& sizes, const RngInput& rng);
  ScoreForm form() const override { return {ScoreForm::Kind::dot, {}, key.weight}; }
  void params(ParamVisitor& visit) override { visit("key", key); }
};

}  // namespace gradus::nn
