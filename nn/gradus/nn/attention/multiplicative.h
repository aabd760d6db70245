#pragma once

#include <cmath>

#include <gradus/nn/attention/formed.h>

namespace gradus::nn {

/// Luong et al. 2015, "dot": e = query . annotation; needs Q = D. No parameters.
struct DotAttention : FormedAttention {
  double scale;

  /// @throws Error when query and annotation differ in size.
  DotAttention(const AttentionSizes& s, const RngInput& rng, double factor = 1)
      : FormedAttention(s.options), scale(factor) {
    if (s.query_size != s.annotation_size)
      fail(rng.caller(), "DotAttention",
           "query and annotations must have one size: " + std::to_string(s.query_size) + " and " +
               std::to_string(s.annotation_size) + " (general attention has a matrix between them)");
  }
  ScoreForm form() const override { return {ScoreForm::Kind::dot, {}, {}, {}, scale}; }
};

/// Vaswani et al. 2017, section 3.2.1: e = query . annotation / sqrt(D), which keeps the scores of long vectors
/// out of the flat ends of the softmax; needs Q = D. No parameters.
struct ScaledDotAttention : DotAttention {
  ScaledDotAttention(const AttentionSizes& sizes, const RngInput& rng)
      : DotAttention(sizes, rng, 1 / std::sqrt(static_cast<double>(sizes.annotation_size))) {}
};

/// Luong et al. 2015, "general": e = query^T W annotation. Parameter: key.weight = W [Q, D].
struct GeneralAttention : FormedAttention {
  Linear key;

  GeneralAttention(const AttentionSizes& s, const RngInput& rng)
      : FormedAttention(s.options), key(s.annotation_size, s.query_size, rng, {.bias = false}) {}
  ScoreForm form() const override { return {ScoreForm::Kind::dot, {}, key.weight}; }
  void params(ParamVisitor& visit) override { visit("key", key); }
};

}  // namespace gradus::nn
