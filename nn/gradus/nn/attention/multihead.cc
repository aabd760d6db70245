#include <gradus/nn/attention/multihead.h>

#include <cmath>

#include <gradus/ops/shape.h>

namespace gradus::nn {

MultiheadSourceAttention::MultiheadSourceAttention(const AttentionSizes& s, Rng& rng)
    : Attention(s.options),
      heads(s.query_size, s.options.heads, rng, {.kdim = s.annotation_size, .vdim = s.annotation_size}) {}

AttentionMemory MultiheadSourceAttention::prepare(const Input& annotations, const Tensor& mask) const {
  At at(annotations.caller());
  return {annotations, heads.project_memory(annotations), mask};
}

MultiheadAttentionOutput MultiheadSourceAttention::attend(const Input& queries,
                                                          const AttentionMemory& memory) const {
  At at(queries.caller());
  double size = static_cast<double>(heads.embed_dim / heads.num_heads);
  return heads.attend(
      queries, memory.keys,
      {.mask = memory.mask, .weights = true, .scale = 1 / (std::sqrt(size) * options.temperature)});
}

Attended MultiheadSourceAttention::step(const Input& query, const AttentionMemory& memory,
                                        const AttentionState& state) const {
  At at(query.caller());
  int64_t B = query.size(0), S = memory.annotations.size(0);
  MultiheadAttentionOutput found = attend(reshape(query, {1, B, heads.embed_dim}), memory);
  Attended out{reshape(found.output, {B, heads.embed_dim}), found.weights.row(0), state};
  ++out.state.step;
  out.head_weights = found.head_weights.reshape({B, heads.num_heads, S});
  return out;
}

AttendedSequence MultiheadSourceAttention::sequence(const Input& queries,
                                                    const AttentionMemory& memory) const {
  At at(queries.caller());
  MultiheadAttentionOutput found = attend(queries, memory);
  return {found.output, found.weights};
}

}  // namespace gradus::nn
