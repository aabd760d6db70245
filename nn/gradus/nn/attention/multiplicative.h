#pragma once

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/linear.h>

namespace gradus::nn {

/// e = scale query . key. What dot, scaled dot and general share; all steps of a sequence are a few products.
struct MultiplicativeAttention : ScoredAttention {
  double scale;

  explicit MultiplicativeAttention(const AttentionOptions& o, double factor = 1,
                                   Caller caller = Caller::current())
      : ScoredAttention(o, caller), scale(factor) {}
  Var scores(const Input& query, const AttentionMemory& memory, const AttentionState& state) const override;
  Attended step(const Input& query, const AttentionMemory& memory,
                const AttentionState& state) const override;
  AttendedSequence sequence(const Input& queries, const AttentionMemory& memory) const override;
};

/// Luong et al. 2015, "dot": e = query . annotation; needs Q = D. No parameters.
struct DotAttention : MultiplicativeAttention {
  /// @throws Error when query and annotation differ in size.
  explicit DotAttention(const AttentionSizes& sizes, double factor = 1, Caller caller = Caller::current());
  DotAttention(const AttentionSizes& sizes, Rng&, Caller caller = Caller::current())
      : DotAttention(sizes, 1, caller) {}
};

/// Vaswani et al. 2017, section 3.2.1: e = query . annotation / sqrt(D), which keeps the scores of long vectors out of
/// the flat ends of the softmax; needs Q = D. No parameters.
struct ScaledDotAttention : DotAttention {
  ScaledDotAttention(const AttentionSizes& sizes, Rng&, Caller caller = Caller::current());
};

/// Luong et al. 2015, "general": e = query^T W annotation. Parameter: key.weight = W [Q, D].
struct GeneralAttention : MultiplicativeAttention {
  Linear key;

  GeneralAttention(const AttentionSizes& sizes, Rng& rng, Caller caller = Caller::current());
  AttentionMemory prepare(const Input& annotations, const Tensor& mask) const override;
  void params(ParamVisitor& visit) override;
};

}  // namespace gradus::nn
