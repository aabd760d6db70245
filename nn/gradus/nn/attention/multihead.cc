#include <gradus/nn/attention/multihead.h>

#include <gradus/ops/shape.h>

namespace gradus::nn {

MultiheadSourceAttention::MultiheadSourceAttention(const AttentionSizes& s, const RngInput& rng)
    : Attention(s.options),
      heads(s.query_size, s.options.heads, rng, {.kdim = s.annotation_size, .vdim = s.annotation_size}) {}

double MultiheadSourceAttention::scale() const { return heads.scale / options.temperature; }

MultiheadAttentionOutput MultiheadSourceAttention::attend(const Input& queries,
                                                          const AttentionMemory& memory) const {
  At at(queries.caller());
  return heads.attend(queries, memory.keys, {.mask = memory.mask, .weights = true, .scale = scale()});
}

// A query [1, B, E]. Each head is a sentence of its own, so that each has its own mask.
MultiheadAttentionOutput MultiheadSourceAttention::attend_to_some(const Input& query,
                                                                  const AttentionMemory& memory) const {
  At at(query.caller());
  int64_t B = query.size(1), S = memory.keys.size(0), E = heads.embed_dim, H = heads.num_heads, d = E / H;
  Var q = reshape(heads.project_queries(query), {1, B * H, d});
  auto part = [&](int64_t begin) { return reshape(slice(memory.keys, 2, begin, begin + E), {S, B * H, d}); };
  Var k = part(0), v = part(E);
  Tensor mask;
  if (memory.mask.defined()) {
    mask = Tensor({B * H, S}, DType::u8);
    for (int64_t i = 0; i < B * H; ++i) mask.row(i).copy_from(memory.mask.row(i / H));
  }
  ScaledDotProductOptions one{.scale = scale(), .mask = mask, .weights = true};
  {
    NoGrad guard;
    Tensor all = scaled_dot_product_attention(q, k, v, one).weights;
    one.mask = kept(all.reshape({B * H, S}), mask);
  }
  ScaledDotProduct found = scaled_dot_product_attention(q, k, v, one);
  return heads.finish({reshape(found.output, {1, B, E}), found.weights.reshape({B, H, 1, S})});
}

Attended MultiheadSourceAttention::step(const Input& query, const AttentionMemory& memory,
                                        const AttentionState& state) const {
  At at(query.caller());
  int64_t B = query.size(0), S = memory.annotations.size(0);
  Var q = reshape(query, {1, B, heads.embed_dim});
  MultiheadAttentionOutput found = cuts() ? attend_to_some(q, memory) : attend(q, memory);
  Attended out{reshape(found.output, {B, heads.embed_dim}), found.weights.row(0), state};
  ++out.state.step;
  out.head_weights = found.head_weights.reshape({B, heads.num_heads, S});
  return out;
}

AttendedSequence MultiheadSourceAttention::sequence(const Input& queries,
                                                    const AttentionMemory& memory) const {
  At at(queries.caller());
  if (cuts()) return Attention::sequence(queries, memory);
  MultiheadAttentionOutput found = attend(queries, memory);
  return {found.output, found.weights};
}

}  // namespace gradus::nn
