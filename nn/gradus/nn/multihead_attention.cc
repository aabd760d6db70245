#include <gradus/nn/check.h>
#include <gradus/nn/init.h>
#include <gradus/nn/multihead_attention.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>

#include <algorithm>
#include <cmath>

namespace gradus::nn {
namespace {

// One and the same Var: its projections can be one product.
bool same(const Var& a, const Var& b) {
  return a.node() == b.node() && a.value().raw() == b.value().raw() && a.shape() == b.shape();
}

ScaledDotProductOptions options_of(const MultiheadAttention& a, const AttendOptions& o) {
  return {.heads = a.num_heads,
          .scale = o.scale != 0 ? o.scale : a.scale,
          .mask = o.mask,
          .causal = o.causal,
          .dropout = a.dropout,
          .weights = o.weights};
}

// [B, H, T, S] -> [T, B, S]
Tensor mean_over_heads(const Tensor& weights) {
  return permute(mean(weights, 1), {1, 0, 2}).value();
}

// The numbers of heads next to the one asked for that divide the size.
std::string heads_hint(int64_t embed_dim, int64_t num_heads) {
  if (num_heads % embed_dim == 0) return "the number of heads comes second: exchanged?";
  if (num_heads > embed_dim) return fmt::format("at most {} heads", embed_dim);
  int64_t below = num_heads, above = num_heads;
  while (embed_dim % below != 0) --below;
  while (embed_dim % above != 0) ++above;
  return fmt::format("{} or {} heads?", below, above);
}

}  // namespace

void KeyValueCache::append(const Tensor& row) {
  if (row.dims() != 3 || row.size(0) != 1)
    refuse("KeyValueCache", "keys and values of a word must be [1, B, 2E]: {}", row.shape());
  if (length > 0 && row.shape().without(0) != keys_values.shape().without(0))
    refuse("KeyValueCache", "a word's keys and values must be as those before: [1, {}, {}], given {}",
           keys_values.size(1), keys_values.size(2), row.shape());
  if (!keys_values.defined() || length == keys_values.size(0)) {
    Shape shape = row.shape();
    shape.set(0, std::max<int64_t>(16, 2 * length));
    Tensor larger(shape, row.dtype());
    if (length > 0) larger.rows(0, length).copy_from(used());
    keys_values = larger;
  }
  if (!keys_values.sole_owner()) keys_values = keys_values.clone();  // a copy of the cache goes its own way
  keys_values.rows(length, length + 1).copy_from(row);
  ++length;
}

void KeyValueCache::select(const std::vector<int64_t>& rows) {
  if (length == 0) return;
  int64_t before = keys_values.size(1), n = keys_values.size(2);
  for (int64_t row : rows)
    if (row < 0 || row >= before) refuse("KeyValueCache", "sentences are 0 .. {}: {}", before - 1, row);
  Tensor chosen({keys_values.size(0), static_cast<int64_t>(rows.size()), n}, keys_values.dtype());
  visit_floating(keys_values, "KeyValueCache", [&](auto* from) {
    auto* to = static_cast<decltype(from)>(chosen.raw());
    for (int64_t t = 0; t < length; ++t, from += before * n)
      for (int64_t row : rows) to = std::copy_n(from + row * n, n, to);
  });
  keys_values = chosen;
}

MultiheadAttention::MultiheadAttention(int64_t embedding, int64_t heads, const RngInput& rng,
                                       const MultiheadAttentionOptions& o)
    : embed_dim(embedding),
      num_heads(heads),
      dropout(o.dropout),
      out_proj(embedding, embedding, rng, {.bias = o.bias}) {
  At at(rng.caller());
  must_be_positive("MultiheadAttention", "num_heads", num_heads);
  must_be_probability("MultiheadAttention", "dropout", dropout);
  must_be_positive("MultiheadAttention", "temperature", o.temperature);
  if (embed_dim % num_heads != 0)
    fail("MultiheadAttention",
         fmt::format("embed_dim must be a multiple of num_heads: {}, {}", embed_dim, num_heads),
         heads_hint(embed_dim, num_heads));
  scale = 1 / (std::sqrt(static_cast<double>(embed_dim / num_heads)) * o.temperature);
  int64_t E = embed_dim, kdim = o.kdim ? o.kdim : E, vdim = o.vdim ? o.vdim : E;
  auto weight = [&rng](int64_t out, int64_t in, const char* name) {
    Parameter p(Tensor({out, in}, DType::f32), name);
    init::xavier_uniform_(p, rng);
    return p;
  };
  if (kdim == E && vdim == E) {
    in_proj_weight = weight(3 * E, E, "in_proj_weight");
  } else {
    q_proj_weight = weight(E, E, "q_proj_weight");
    k_proj_weight = weight(E, kdim, "k_proj_weight");
    v_proj_weight = weight(E, vdim, "v_proj_weight");
  }
  if (o.bias) {
    in_proj_bias = Parameter(Tensor::zeros({3 * E}), "in_proj_bias");
    init::zeros_(out_proj.bias);
  }
}

Var MultiheadAttention::project(const Var& x, int64_t begin, int64_t end) const {
  int64_t E = embed_dim;
  Var bias = in_proj_bias.defined() ? slice(in_proj_bias, 0, begin * E, end * E) : Var();
  if (in_proj_weight.defined()) {
    bool all = begin == 0 && end == 3;
    return linear(x, all ? in_proj_weight.var() : slice(in_proj_weight, 0, begin * E, end * E), bias);
  }
  if (end - begin > 1) return concat({project(x, begin, end - 1), project(x, end - 1, end)}, -1);
  const Parameter& weight = begin == 0 ? q_proj_weight : begin == 1 ? k_proj_weight : v_proj_weight;
  return linear(x, weight, bias);
}

MultiheadAttentionOutput MultiheadAttention::finish(const ScaledDotProduct& heads) const {
  return {out_proj(heads.output), heads.weights.defined() ? mean_over_heads(heads.weights) : Tensor(),
          heads.weights};
}

MultiheadAttentionOutput MultiheadAttention::operator()(const Input& query, const Var& key, const Var& value,
                                                        const AttendOptions& o) const {
  At at(query.caller());
  if (query.dims() != 3)
    refuse("MultiheadAttention", "the query must be [T, B, E], time first: {}", query.shape());
  Scope scope("attention");
  ScaledDotProductOptions options = options_of(*this, o);
  if (in_proj_weight.defined() && same(query, key) && same(key, value))
    return finish(packed_self_attention(project(query, 0, 3), options));
  Var q = project(query, 0, 1);
  if (in_proj_weight.defined() && same(key, value))
    return finish(packed_cross_attention(q, project(key, 1, 3), options));
  return finish(scaled_dot_product_attention(q, project(key, 1, 2), project(value, 2, 3), options));
}

Var MultiheadAttention::project_queries(const Input& queries) const {
  At at(queries.caller());
  return project(queries, 0, 1);
}

Var MultiheadAttention::project_memory(const Input& memory) const {
  At at(memory.caller());
  return project(memory, 1, 3);
}

MultiheadAttentionOutput MultiheadAttention::attend(const Input& query, const Var& keys_values,
                                                    const AttendOptions& o) const {
  At at(query.caller());
  Scope scope("attention");
  return finish(packed_cross_attention(project(query, 0, 1), keys_values, options_of(*this, o)));
}

Var MultiheadAttention::step(const Input& x, KeyValueCache& cache) const {
  At at(x.caller());
  Var qkv = project(x, 0, 3);
  cache.append(slice(qkv, 2, embed_dim, 3 * embed_dim).value());
  return finish(packed_cross_attention(slice(qkv, 2, 0, embed_dim), cache.used(),
                                       {.heads = num_heads, .scale = scale}))
      .output;
}

}  // namespace gradus::nn
