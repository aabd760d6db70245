#include <gradus/nn/attention/additive.h>

#include <cmath>
#include <typeinfo>

#include <gradus/nn/check.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention_scores.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {

Parameter score_vector(int64_t n, Rng& rng, Caller caller) {
  At at(caller);
  must_be_positive("score_vector", "n", n);
  double bound = 1.0 / std::sqrt(static_cast<double>(n));
  return Parameter(Tensor::uniform({n}, -bound, bound, rng));
}

Var HiddenLayerAttention::scaled_v() const {
  return options.temperature == 1 ? v.var() : v * (1 / options.temperature);
}

Var HiddenLayerAttention::scores(const Input& query, const AttentionMemory& memory,
                                 const AttentionState&) const {
  At at(query.caller());
  return additive_scores(linear(query, query_weight()), memory.keys, v);
}

Attended HiddenLayerAttention::step(const Input& query, const AttentionMemory& memory,
                                    const AttentionState& state) const {
  At at(query.caller());
  if (cuts()) return ScoredAttention::step(query, memory, state);
  AttentionStep found = additive_attention(linear(query, query_weight()), memory.keys, memory.annotations,
                                           scaled_v(), memory.mask);
  Attended out{found.context, found.weights, state};
  ++out.state.step;
  return out;
}

const HiddenLayerAttention* as_hidden_layer(const Attention& a) {
  const std::type_info& type = typeid(a);
  bool own = type == typeid(AdditiveAttention) || type == typeid(ConcatAttention) ||
             type == typeid(ConcatIdentityAttention);
  return own ? static_cast<const HiddenLayerAttention*>(&a) : nullptr;
}

// ---- additive ----

AdditiveAttention::AdditiveAttention(const AttentionSizes& s, Rng& rng, Caller caller)
    : HiddenLayerAttention(s.options, caller),
      query(s.query_size, s.attention_size, rng, {.bias = false}, caller),
      key(s.annotation_size, s.attention_size, rng, {.bias = false}, caller) {
  v = score_vector(s.attention_size, rng, caller);
}

AttentionMemory AdditiveAttention::prepare(const Input& annotations, const Tensor& mask) const {
  At at(annotations.caller());
  return {annotations, key(annotations), mask};
}

void AdditiveAttention::params(ParamVisitor& visit) {
  visit("query", query);
  visit("key", key);
  visit("v", v);
}

// ---- concat ----

ConcatAttention::ConcatAttention(const AttentionSizes& s, Rng& rng, Caller caller)
    : HiddenLayerAttention(s.options, caller),
      query_size(s.query_size),
      weight(std::move(
          Linear(s.query_size + s.annotation_size, s.attention_size, rng, {.bias = false}, caller).weight)) {
  v = score_vector(s.attention_size, rng, caller);
}

// W query is a small product, so its half of W is cut out at each step anew; the memory keeps the annotations' half.
AttentionMemory ConcatAttention::prepare(const Input& annotations, const Tensor& mask) const {
  At at(annotations.caller());
  return {annotations, linear(annotations, slice(weight, 1, query_size, weight.shape()[1])), mask};
}

Var ConcatAttention::query_weight() const { return slice(weight, 1, 0, query_size); }

void ConcatAttention::params(ParamVisitor& visit) {
  visit("weight", weight);
  visit("v", v);
}

// ---- concat with the identity ----

ConcatIdentityAttention::ConcatIdentityAttention(const AttentionSizes& s, Rng& rng, Caller caller)
    : HiddenLayerAttention(s.options, caller), query(s.query_size, s.annotation_size, rng, {.bias = false}, caller) {
  v = score_vector(s.annotation_size, rng, caller);
}

void ConcatIdentityAttention::params(ParamVisitor& visit) {
  visit("query", query);
  visit("v", v);
}

}  // namespace gradus::nn
