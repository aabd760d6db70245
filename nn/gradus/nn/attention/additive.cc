#include <gradus/nn/attention/additive.h>

#include <cmath>

#include <gradus/ops/matmul.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

// v starts small but not at 0: with v = 0 the scores' gradient is 0 as well and nothing moves at first.
Parameter small_vector(int64_t n, Rng& rng) {
  double bound = 1.0 / std::sqrt(static_cast<double>(n));
  return Parameter(Tensor::uniform({n}, -bound, bound, rng));
}

}  // namespace

AdditiveAttention::AdditiveAttention(const AttentionSizes& s, Rng& rng)
    : query(s.query_size, s.attention_size, rng, {.bias = false}),
      key(s.annotation_size, s.attention_size, rng, {.bias = false}),
      v(small_vector(s.attention_size, rng)) {}

AttentionMemory AdditiveAttention::prepare(const Var& annotations, const Tensor& mask) const {
  return {annotations, key(annotations), mask};
}

AttentionStep AdditiveAttention::step(const Var& q, const AttentionMemory& memory) const {
  return additive_attention(query(q), memory.keys, memory.annotations, v, memory.mask);
}

void AdditiveAttention::params(ParamVisitor& visit) {
  visit("query", query);
  visit("key", key);
  visit("v", v);
}

ConcatAttention::ConcatAttention(const AttentionSizes& s, Rng& rng)
    : query_size(s.query_size),
      weight(Tensor::uniform({s.attention_size, s.query_size + s.annotation_size},
                             -1.0 / std::sqrt(static_cast<double>(s.query_size + s.annotation_size)),
                             1.0 / std::sqrt(static_cast<double>(s.query_size + s.annotation_size)), rng)),
      v(small_vector(s.attention_size, rng)) {}

AttentionMemory ConcatAttention::prepare(const Var& annotations, const Tensor& mask) const {
  return {annotations, linear(annotations, slice(weight, 1, query_size, weight.shape()[1])), mask};
}

AttentionStep ConcatAttention::step(const Var& query, const AttentionMemory& memory) const {
  return additive_attention(linear(query, slice(weight, 1, 0, query_size)), memory.keys, memory.annotations, v,
                            memory.mask);
}

void ConcatAttention::params(ParamVisitor& visit) {
  visit("weight", weight);
  visit("v", v);
}

}  // namespace gradus::nn
