#include <gradus/nn/attention/additive.h>

#include <cmath>

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention_scores.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

Var over_temperature(const Parameter& v, const Attention& a) {
  return a.options.temperature == 1 ? v.var() : v * (1 / a.options.temperature);
}

// Score, softmax and context as one op. u [B, A] is the projected query.
Attended fused_step(const Var& u, const Var& v, const AttentionMemory& memory, const AttentionState& state) {
  AttentionStep found = additive_attention(u, memory.keys, memory.annotations, v, memory.mask);
  Attended out{found.context, found.weights, state};
  ++out.state.step;
  return out;
}

}  // namespace

Parameter score_vector(int64_t n, Rng& rng) {
  double bound = 1.0 / std::sqrt(static_cast<double>(n));
  return Parameter(Tensor::uniform({n}, -bound, bound, rng));
}

// ---- additive ----

AdditiveAttention::AdditiveAttention(const AttentionSizes& s, Rng& rng)
    : ScoredAttention(s.options),
      query(s.query_size, s.attention_size, rng, {.bias = false}),
      key(s.annotation_size, s.attention_size, rng, {.bias = false}),
      v(score_vector(s.attention_size, rng)) {}

AttentionMemory AdditiveAttention::prepare(const Input& annotations, const Tensor& mask) const {
  At at(annotations.caller());
  return {annotations, key(annotations), mask};
}

Var AdditiveAttention::scores(const Input& q, const AttentionMemory& memory, const AttentionState&) const {
  At at(q.caller());
  return additive_scores(query(q), memory.keys, v);
}

Attended AdditiveAttention::step(const Input& q, const AttentionMemory& memory,
                                 const AttentionState& state) const {
  At at(q.caller());
  if (cuts()) return ScoredAttention::step(q, memory, state);
  return fused_step(query(q), scaled_v(), memory, state);
}

Var AdditiveAttention::scaled_v() const { return over_temperature(v, *this); }

void AdditiveAttention::params(ParamVisitor& visit) {
  visit("query", query);
  visit("key", key);
  visit("v", v);
}

// ---- concat ----

ConcatAttention::ConcatAttention(const AttentionSizes& s, Rng& rng)
    : ScoredAttention(s.options),
      query_size(s.query_size),
      weight(Tensor::uniform({s.attention_size, s.query_size + s.annotation_size},
                             -1.0 / std::sqrt(static_cast<double>(s.query_size + s.annotation_size)),
                             1.0 / std::sqrt(static_cast<double>(s.query_size + s.annotation_size)), rng)),
      v(score_vector(s.attention_size, rng)) {}

// W query is a small product, so its half of W is cut out at each step anew; the memory keeps the annotations' half.
AttentionMemory ConcatAttention::prepare(const Input& annotations, const Tensor& mask) const {
  At at(annotations.caller());
  return {annotations, linear(annotations, slice(weight, 1, query_size, weight.shape()[1])), mask};
}

Var ConcatAttention::scores(const Input& query, const AttentionMemory& memory, const AttentionState&) const {
  At at(query.caller());
  return additive_scores(linear(query, slice(weight, 1, 0, query_size)), memory.keys, v);
}

Attended ConcatAttention::step(const Input& query, const AttentionMemory& memory,
                               const AttentionState& state) const {
  At at(query.caller());
  if (cuts()) return ScoredAttention::step(query, memory, state);
  return fused_step(linear(query, slice(weight, 1, 0, query_size)), over_temperature(v, *this), memory,
                    state);
}

void ConcatAttention::params(ParamVisitor& visit) {
  visit("weight", weight);
  visit("v", v);
}

// ---- concat with the identity ----

ConcatIdentityAttention::ConcatIdentityAttention(const AttentionSizes& s, Rng& rng)
    : ScoredAttention(s.options),
      query(s.query_size, s.annotation_size, rng, {.bias = false}),
      v(score_vector(s.annotation_size, rng)) {}

Var ConcatIdentityAttention::scores(const Input& q, const AttentionMemory& memory,
                                    const AttentionState&) const {
  At at(q.caller());
  return additive_scores(query(q), memory.keys, v);
}

Attended ConcatIdentityAttention::step(const Input& q, const AttentionMemory& memory,
                                       const AttentionState& state) const {
  At at(q.caller());
  if (cuts()) return ScoredAttention::step(q, memory, state);
  return fused_step(query(q), over_temperature(v, *this), memory, state);
}

void ConcatIdentityAttention::params(ParamVisitor& visit) {
  visit("query", query);
  visit("v", v);
}

}  // namespace gradus::nn
