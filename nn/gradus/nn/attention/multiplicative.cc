#include <gradus/nn/attention/multiplicative.h>

#include <cmath>

#include <gradus/ops/attention_scores.h>
#include <gradus/ops/attention_sequence.h>

namespace gradus::nn {

Var MultiplicativeAttention::scores(const Input& query, const AttentionMemory& memory,
                                    const AttentionState&) const {
  At at(query.caller());
  return multiplicative_scores(query, memory.keys, scale);
}

Attended MultiplicativeAttention::step(const Input& query, const AttentionMemory& memory,
                                       const AttentionState& state) const {
  At at(query.caller());
  if (cuts()) return ScoredAttention::step(query, memory, state);
  AttentionStep found = multiplicative_attention(query, memory.keys, memory.annotations,
                                                 scale / options.temperature, memory.mask);
  Attended out{found.context, found.weights, state};
  ++out.state.step;
  return out;
}

AttendedSequence MultiplicativeAttention::sequence(const Input& queries,
                                                   const AttentionMemory& memory) const {
  At at(queries.caller());
  if (cuts()) return Attention::sequence(queries, memory);
  AttentionSequence all = multiplicative_attention_sequence(queries, memory.keys, memory.annotations,
                                                            scale / options.temperature, memory.mask);
  return {all.context, all.weights};
}

DotAttention::DotAttention(const AttentionSizes& s, double factor, Caller caller)
    : MultiplicativeAttention(s.options, factor, caller) {
  At at(caller);
  if (s.query_size != s.annotation_size)
    fail("DotAttention", "query and annotations must have one size: " + std::to_string(s.query_size) +
                             " and " + std::to_string(s.annotation_size) +
                             " (general attention has a matrix between them)");
}

ScaledDotAttention::ScaledDotAttention(const AttentionSizes& s, Rng&, Caller caller)
    : DotAttention(s, 1 / std::sqrt(static_cast<double>(s.annotation_size)), caller) {}

GeneralAttention::GeneralAttention(const AttentionSizes& s, Rng& rng, Caller caller)
    : MultiplicativeAttention(s.options, 1, caller),
      key(s.annotation_size, s.query_size, rng, {.bias = false}, caller) {}

AttentionMemory GeneralAttention::prepare(const Input& annotations, const Tensor& mask) const {
  At at(annotations.caller());
  return {annotations, key(annotations), mask};
}

void GeneralAttention::params(ParamVisitor& visit) { visit("key", key); }

}  // namespace gradus::nn
