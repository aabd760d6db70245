#pragma once

#include <gradus/nn/attention/formed.h>

namespace gradus::nn {

/// Bahdanau et al. 2014, appendix A.1.2: e = v . tanh(W1 query + W2 annotation). Parameters: query.weight = W1
/// [A, Q], key.weight = W2 [A, D], v [A].
struct AdditiveAttention : FormedAttention {
  Linear query, key;
  Parameter v;

  AdditiveAttention(const AttentionSizes& sizes, const RngInput& rng);
  ScoreForm form() const override { return {ScoreForm::Kind::additive, query.weight, key.weight, v}; }
  void params(ParamVisitor& visit) override {
    visit("query", query);
    visit("key", key);
    visit("v", v);
  }
};

/// Luong et al. 2015, "concat": e = v . tanh(W [query ; annotation]). Parameters: weight = W [A, Q + D], v [A].
/// With W = [W1 W2] it is additive attention exactly, and is computed that way: W2 annotations once, W1 query
/// at each step.
struct ConcatAttention : FormedAttention {
  int64_t query_size;
  Parameter weight, v;

  ConcatAttention(const AttentionSizes& sizes, const RngInput& rng);
  ScoreForm form() const override;
  void params(ParamVisitor& visit) override {
    visit("weight", weight);
    visit("v", v);
  }
};

/// Concat as Luong's released program computes it: the block of W for the annotations is the identity, so that
/// only the query's is learned, e = v . tanh(W query + annotation); A = D. Their paper's note blames concat's
/// poor figures on it. Parameters: query.weight = W [D, Q], v [D].
struct ConcatIdentityAttention : FormedAttention {
  Linear query;
  Parameter v;

  ConcatIdentityAttention(const AttentionSizes& sizes, const RngInput& rng);
  ScoreForm form() const override { return {ScoreForm::Kind::additive, query.weight, {}, v}; }
  void params(ParamVisitor& visit) override {
    visit("query", query);
    visit("v", v);
  }
};

/// A start for v: small but not 0, for with v = 0 the scores' gradient is 0 as well and nothing moves at first.
/// @throws Error when n is not positive.
Parameter score_vector(int64_t n, const RngInput& rng);

}  // namespace gradus::nn
