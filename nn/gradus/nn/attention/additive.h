#pragma once

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/linear.h>

namespace gradus::nn {

/// What additive, concat and concat-identity share: e = v . tanh(W query + key), v [A], W [A, Q]. Score, softmax and
/// context of a step are one op; a whole target in Bahdanau's order is another one.
struct HiddenLayerAttention : ScoredAttention {
  Parameter v;

  using ScoredAttention::ScoredAttention;
  /// W [A, Q].
  virtual Var query_weight() const = 0;
  Var scores(const Input& query, const AttentionMemory& memory, const AttentionState& state) const override;
  Attended step(const Input& query, const AttentionMemory& memory,
                const AttentionState& state) const override;
  /// v / temperature: the scores are linear in v.
  Var scaled_v() const;
};

/// `attention`, where its steps are the library's own of the three: null for others, and for what is derived from them.
const HiddenLayerAttention* as_hidden_layer(const Attention& attention);

/// Bahdanau et al. 2014, appendix A.1.2: e = v . tanh(W1 query + W2 annotation). Parameters: query.weight = W1 [A, Q],
/// key.weight = W2 [A, D], v [A].
struct AdditiveAttention : HiddenLayerAttention {
  Linear query, key;

  AdditiveAttention(const AttentionSizes& sizes, Rng& rng, Caller caller = Caller::current());
  AttentionMemory prepare(const Input& annotations, const Tensor& mask) const override;
  Var query_weight() const override { return query.weight.var(); }
  void params(ParamVisitor& visit) override;
};

/// Luong et al. 2015, "concat": e = v . tanh(W [query ; annotation]). Parameters: weight = W [A, Q + D], v [A]. With
/// W = [W1 W2] it is additive attention exactly, and is computed that way: W2 annotations once, W1 query at each step.
struct ConcatAttention : HiddenLayerAttention {
  int64_t query_size;
  Parameter weight;

  ConcatAttention(const AttentionSizes& sizes, Rng& rng, Caller caller = Caller::current());
  AttentionMemory prepare(const Input& annotations, const Tensor& mask) const override;
  /// The query's columns of W.
  Var query_weight() const override;
  void params(ParamVisitor& visit) override;
};

/// Concat as Luong's released program computes it: the block of W for the annotations is the identity, so that only the
/// query's is learned, e = v . tanh(W query + annotation); A = D. Their paper's note blames concat's poor figures on it.
/// Parameters: query.weight = W [D, Q], v [D].
struct ConcatIdentityAttention : HiddenLayerAttention {
  Linear query;

  ConcatIdentityAttention(const AttentionSizes& sizes, Rng& rng, Caller caller = Caller::current());
  Var query_weight() const override { return query.weight.var(); }
  void params(ParamVisitor& visit) override;
};

/// A start for v: small but not 0, for with v = 0 the scores' gradient is 0 as well and nothing moves at first.
/// @throws Error when n is not positive.
Parameter score_vector(int64_t n, Rng& rng, Caller caller = Caller::current());

}  // namespace gradus::nn
