#include <gradus/nn/attention/multiplicative.h>

namespace gradus::nn {

DotAttention::DotAttention(const AttentionSizes& s) {
  if (s.query_size != s.annotation_size)
    fail("DotAttention", "query and annotations must have one size: " + std::to_string(s.query_size) + " and " +
                             std::to_string(s.annotation_size) + " (general attention has a matrix between them)");
}

AttentionMemory DotAttention::prepare(const Var& annotations, const Tensor& mask) const {
  return {annotations, annotations, mask};
}

AttentionStep DotAttention::step(const Var& query, const AttentionMemory& memory) const {
  return multiplicative_attention(query, memory.keys, memory.annotations, 1, memory.mask);
}

GeneralAttention::GeneralAttention(const AttentionSizes& s, Rng& rng)
    : key(s.annotation_size, s.query_size, rng, {.bias = false}) {}

AttentionMemory GeneralAttention::prepare(const Var& annotations, const Tensor& mask) const {
  return {annotations, key(annotations), mask};
}

AttentionStep GeneralAttention::step(const Var& query, const AttentionMemory& memory) const {
  return multiplicative_attention(query, memory.keys, memory.annotations, 1, memory.mask);
}

void GeneralAttention::params(ParamVisitor& visit) { visit("key", key); }

}  // namespace gradus::nn
