#pragma once

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/linear.h>

namespace gradus::nn {

/// Bahdanau et al. 2014, appendix A.1.2: e = v . tanh(W1 query + W2 annotation). Parameters: query.weight = W1 [A, Q],
/// key.weight = W2 [A, D], v [A].
struct AdditiveAttention : Attention {
  Linear query, key;
  Parameter v;

  explicit AdditiveAttention(const AttentionSizes& sizes, Rng& rng);
  AttentionMemory prepare(const Var& annotations, const Tensor& mask) const override;
  AttentionStep step(const Var& query, const AttentionMemory& memory) const override;
  void params(ParamVisitor& visit) override;
};

/// Luong et al. 2015, "concat": e = v . tanh(W [query ; annotation]). Parameters: weight = W [A, Q + D], v [A]. With
/// W = [W1 W2] it is additive attention exactly, and is computed that way: W2 annotations once, W1 query at each step.
struct ConcatAttention : Attention {
  int64_t query_size;
  Parameter weight, v;

  explicit ConcatAttention(const AttentionSizes& sizes, Rng& rng);
  AttentionMemory prepare(const Var& annotations, const Tensor& mask) const override;
  AttentionStep step(const Var& query, const AttentionMemory& memory) const override;
  void params(ParamVisitor& visit) override;
};

}  // namespace gradus::nn
