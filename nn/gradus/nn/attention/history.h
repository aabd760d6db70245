#pragma once

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/linear.h>

// Attentions that see where they looked before.

namespace gradus::nn {

/// Chorowski et al. 2015, eq. 8 and 9; Cho et al. 2015: additive, with the previous weights convolved into the
/// score, so that of two equal words the one next to the last can be told:
///   f = F * weights_{t-1}      e_s = v . tanh(W query + V annotation_s + U f_s + b)
/// Before the first step all real positions count the same. Parameters: query.weight = W [A, Q], query.bias = b
/// [A], key.weight = V [A, D], filters = F [K, width], location.weight = U [A, K], v [A].
struct LocationAwareAttention : ScoredAttention {
  Linear query, key, location;
  Parameter filters, v;

  /// @throws Error when the number of filters is not positive or their width not odd.
  LocationAwareAttention(const AttentionSizes& sizes, const RngInput& rng);
  Var keys_of(const Input& annotations) const override { return key(annotations); }
  AttentionState start(const AttentionMemory& memory) const override;
  Var scores(const Input& query, const AttentionMemory& memory, const AttentionState& state) const override;
  void params(ParamVisitor& visit) override {
    visit("query", query);
    visit("key", key);
    visit("filters", filters);
    visit("location", location);
    visit("v", v);
  }
};

/// Tu et al. 2016, linguistic coverage without fertility: additive, with what each position received so far in
/// the score:
///   C_s = sum_{t' < t} weights_{t', s}      e_s = v . tanh(W query + V annotation_s + u C_s)
/// Parameters: query.weight = W [A, Q], key.weight = V [A, D], coverage.weight = u [A, 1], v [A].
struct CoverageAttention : ScoredAttention {
  Linear query, key, coverage;
  Parameter v;

  CoverageAttention(const AttentionSizes& sizes, const RngInput& rng);
  Var keys_of(const Input& annotations) const override { return key(annotations); }
  AttentionState start(const AttentionMemory& memory) const override;
  Var scores(const Input& query, const AttentionMemory& memory, const AttentionState& state) const override;
  void params(ParamVisitor& visit) override {
    visit("query", query);
    visit("key", key);
    visit("coverage", coverage);
    visit("v", v);
  }
};

}  // namespace gradus::nn
