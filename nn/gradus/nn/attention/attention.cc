#include <gradus/nn/attention/attention.h>

#include <algorithm>
#include <cstring>

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention_scores.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>

namespace gradus::nn {
namespace {

// Columns of a time-major [S, B, ...]: copied, where nobody wants a gradient of them.
Var take_columns(const Var& x, const Tensor& rows) {
  if (!x.defined()) return x;
  if (x.requires_grad()) return transpose(gather_rows(transpose(x, 0, 1), rows), 0, 1);
  int64_t S = x.size(0), B = x.size(1), N = rows.numel();
  for (int64_t i = 0; i < N; ++i)
    if (int32_t row = rows.i32()[i]; row < 0 || row >= B)
      refuse("rows", "must be in 0 .. {}: {}", B - 1, row);
  Shape shape = x.shape();
  shape.set(1, N);
  Tensor out(shape, x.dtype());
  size_t bytes = static_cast<size_t>(x.shape().stride(1) * size_of(x.dtype()));
  const char* from = static_cast<const char*>(x.value().raw());
  char* to = static_cast<char*>(out.raw());
  for (int64_t s = 0; s < S; ++s)
    for (int64_t i = 0; i < N; ++i, to += bytes)
      std::memcpy(to, from + static_cast<size_t>(s * B + rows.i32()[i]) * bytes, bytes);
  return out;
}

Var take_rows(const Var& x, const Tensor& rows) { return x.defined() ? gather_rows(x, rows) : x; }

}  // namespace

AttentionMemory AttentionMemory::rows(const Tensor& rows) const {
  AttentionMemory out;
  out.annotations = take_columns(annotations, rows);
  // Dot's keys are the annotations.
  bool same = keys.defined() && keys.value().raw() == annotations.value().raw();
  out.keys = same ? out.annotations : take_columns(keys, rows);
  if (mask.defined())
    out.mask = take_columns(mask.reshape({1, mask.size(0), mask.size(1)}), rows).value().row(0);
  out.given = take_columns(given, rows).value();
  for (const Var& x : extra) out.extra.push_back(take_columns(x, rows));
  return out;
}

AttentionState AttentionState::rows(const Tensor& rows) const {
  AttentionState out{step, take_rows(weights, rows), take_rows(coverage, rows), {}};
  for (const Var& x : extra) out.extra.push_back(take_rows(x, rows));
  return out;
}

Attention::Attention(const AttentionOptions& o) : options(o) {
  if (!(o.temperature > 0))
    fail("Attention", fmt::format("temperature must be positive: {}", o.temperature));
  if (o.top_k < 0) fail("Attention", "top_k must not be negative: " + std::to_string(o.top_k));
}

bool Attention::cuts() const { return (options.top_k > 0 || options.last_only) && !Training::active(); }

Tensor Attention::kept(const Tensor& weights, const Tensor& mask) const {
  int64_t B = weights.size(0), S = weights.size(1);
  Tensor out = Tensor::zeros({B, S}, DType::u8);
  std::vector<int64_t> order;  // of the real positions
  for (int64_t b = 0; b < B; ++b) {
    order.clear();
    for (int64_t s = 0; s < S; ++s)
      if (!mask.defined() || mask.u8()[b * S + s]) order.push_back(s);
    if (options.last_only)
      std::reverse(order.begin(), order.end());
    else
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t i, int64_t j) { return weights.at(b * S + i) > weights.at(b * S + j); });
    order.resize(std::min(order.size(), options.last_only ? 1 : static_cast<size_t>(options.top_k)));
    for (int64_t s : order) out.u8()[b * S + s] = 1;
  }
  return out;
}

AttentionMemory Attention::prepare(const Input& annotations, const Tensor& mask) const {
  At at(annotations.caller());
  if (annotations.dims() != 3) refuse("Attention", "annotations must be [S, B, D]: {}", annotations.shape());
  return {annotations, keys_of(annotations), mask};
}

AttentionState Attention::start(const AttentionMemory&) const { return {}; }

AttendedSequence Attention::sequence(const Input& queries, const AttentionMemory& memory) const {
  At at(queries.caller());
  AttentionState state = start(memory);
  std::vector<Var> contexts, weights, drawn;
  for (int64_t t = 0; t < queries.size(0); ++t) {
    Scope scope("t" + std::to_string(t));
    Attended a = step(select(queries, 0, t), memory, state);
    contexts.push_back(a.context);
    weights.push_back(a.weights);
    if (a.log_probability.defined()) drawn.push_back(a.log_probability);
    state = std::move(a.state);
  }
  return {stack(contexts, 0), stack(weights, 0).value(), drawn.empty() ? Var() : stack(drawn, 0)};
}

Var ScoredAttention::scaled_scores(const Input& query, const AttentionMemory& memory,
                                   const AttentionState& state) const {
  Var e = scores(query, memory, state);
  const Shape wanted{memory.annotations.size(1), memory.annotations.size(0)};
  if (!e.defined() || e.shape() != wanted || e.dtype() != memory.annotations.dtype())
    refuse("ScoredAttention", "scores must be {} [B, S] = {}: {}", memory.annotations.dtype(), wanted,
           e.defined() ? fmt::format("{} {}", e.dtype(), e.shape()) : "undefined");
  return options.temperature == 1 ? e : e * (1 / options.temperature);
}

Var ScoredAttention::weigh(const Var& e, const Tensor& mask) const {
  return softmax(e, {.mask = cuts() ? kept(e.value(), mask) : mask});
}

Attended ScoredAttention::attend(const Var& weights, const AttentionMemory& memory,
                                 const AttentionState& state) const {
  Attended out{weighted_sum(weights, memory.annotations, memory.mask), weights.value(), state};
  ++out.state.step;
  if (state.weights.defined()) out.state.weights = weights;
  if (state.coverage.defined()) out.state.coverage = state.coverage + weights;
  return out;
}

Attended ScoredAttention::step(const Input& query, const AttentionMemory& memory,
                               const AttentionState& state) const {
  At at(query.caller());
  return attend(weigh(scaled_scores(query, memory, state), memory.mask), memory, state);
}

BorrowingAttention::BorrowingAttention(const AttentionSizes& s, std::string_view otherwise,
                                       const RngInput& rng)
    : ScoredAttention(s.options), score(make_score(s, otherwise, rng)) {}

AttentionMemory BorrowingAttention::prepare(const Input& annotations, const Tensor& mask) const {
  At at(annotations.caller());
  return score->prepare(annotations, mask);
}

Var BorrowingAttention::scores(const Input& query, const AttentionMemory& memory,
                               const AttentionState& state) const {
  At at(query.caller());
  return score->scores(query, memory, state);
}

}  // namespace gradus::nn
