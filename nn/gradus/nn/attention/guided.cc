#include <gradus/nn/attention/guided.h>

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/concat_rows.h>
#include <gradus/ops/reduce.h>

namespace gradus::nn {
namespace {

// Rows of gold [N, S] without those that are alike at all real positions of their sentence.
Tensor telling(const Tensor& gold, const Tensor& rows, const Tensor& mask, DType dtype) {
  const int64_t B = gold.size(1), S = gold.size(2), N = rows.numel();
  Tensor out = Tensor::zeros({N, S}, dtype);
  for (int64_t i = 0; i < N; ++i) {
    const int64_t row = rows.i32()[i], b = row % B;
    bool tells = false;
    int64_t first = S;  // real position
    auto at = [&](int64_t s) { return gold.at(row * S + s); };
    for (int64_t s = 0; s < S; ++s)
      if (!mask.defined() || mask.u8()[b * S + s]) tells = tells || at(s) != at(first = std::min(first, s));
    for (int64_t s = 0; tells && s < S; ++s) out.set(i * S + s, at(s));
  }
  return out;
}

}  // namespace

Tensor unit_annotations(int64_t S, int64_t B, DType dtype) {
  Tensor out = Tensor::zeros({S, B, S}, dtype);
  for (int64_t s = 0; s < S; ++s)
    for (int64_t b = 0; b < B; ++b) out.set((s * B + b) * S + s, 1);
  return out;
}

Var guided_alignment(const Attention& attention, const Input& queries, const AttentionMemory& memory,
                     const Tensor& gold, const Tensor& lengths) {
  At at(queries.caller());
  const int64_t T = queries.size(0), B = queries.size(1), S = memory.annotations.size(0);
  if (attention.context_size(S) != S || attention.context_size(S + 1) != S + 1)
    fail("guided_alignment", "this attention's context is no mean of the annotations",
         "one with a single head and scores of its own can be guided");
  if (gold.shape() != Shape{T, B, S})
    fail("guided_alignment", "gold must be [T, B, S] = " + Shape{T, B, S}.str() + ": " + gold.shape().str());
  AttentionMemory positions = memory;
  positions.annotations = unit_annotations(S, B, queries.dtype());
  const Var weights = attention.sequence(queries, positions).context;
  const Tensor rows = real_rows(lengths, T);
  const Var chosen = concat_rows({weights}, rows);
  constexpr double kLeast = 1e-9;  // of a weight, lest its logarithm be infinite
  const Var costs = Var(telling(gold, rows, memory.mask, queries.dtype())) * log(chosen + kLeast);
  return sum(costs) * (rows.numel() > 0 ? -1.0 / static_cast<double>(rows.numel()) : 0.0);
}

}  // namespace gradus::nn
