#include <gradus/nn/attention/location.h>

#include <algorithm>
#include <cmath>

#include <gradus/nn/attention/additive.h>
#include <gradus/nn/check.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {

LocationAttention::LocationAttention(const AttentionSizes& s, const RngInput& rng)
    : ScoredAttention(s.options), position(s.query_size, s.options.max_positions, rng, {.bias = false}) {}

Var LocationAttention::scores(const Input& query, const AttentionMemory& memory,
                              const AttentionState&) const {
  At at(query.caller());
  int64_t S = memory.annotations.size(0), P = position.weight.shape()[0];
  if (S <= P) return linear(query, slice(position.weight, 0, 0, S));
  Tensor beyond = Tensor::zeros({query.size(0), S - P}, query.dtype());  // masked in step
  return concat({position(query), Var(beyond)}, 1);
}

Attended LocationAttention::step(const Input& query, const AttentionMemory& memory,
                                 const AttentionState& state) const {
  At at(query.caller());
  int64_t B = query.size(0), S = memory.annotations.size(0), P = position.weight.shape()[0];
  Tensor mask = memory.mask;
  if (S > P) {
    mask = mask.defined() ? mask.clone() : Tensor::ones({B, S}, DType::u8);
    for (int64_t b = 0; b < B; ++b) std::fill_n(mask.u8() + b * S + P, S - P, uint8_t{0});
  }
  return attend(weigh(scaled_scores(query, memory, state), mask), memory, state);
}

LocalAttention::LocalAttention(const AttentionSizes& s, const RngInput& rng)
    : BorrowingAttention(s, "general", rng) {
  At at(rng.caller());
  must_be_positive("LocalAttention", "window", s.options.window);
}

Tensor LocalAttention::window(const std::vector<int64_t>& centre, const AttentionMemory& memory) const {
  int64_t S = memory.annotations.size(0), B = memory.annotations.size(1);
  Tensor inside = Tensor::zeros({B, S}, DType::u8);
  for (int64_t b = 0; b < B; ++b) {
    int64_t c = centre[static_cast<size_t>(b)];
    int64_t end = std::min(S, c + options.window + 1);
    for (int64_t s = std::max<int64_t>(0, c - options.window); s < end; ++s)
      inside.u8()[b * S + s] = !memory.mask.defined() || memory.mask.u8()[b * S + s];
  }
  return inside;
}

Attended LocalMonotonicAttention::step(const Input& query, const AttentionMemory& memory,
                                       const AttentionState& state) const {
  At at(query.caller());
  const Var& h = memory.annotations;
  std::vector<int64_t> centre = real_positions(memory.mask, h.size(1), h.size(0));
  for (int64_t& c : centre) c = std::min(state.step, c - 1);
  return attend(weigh(scaled_scores(query, memory, state), window(centre, memory)), memory, state);
}

LocalPredictiveAttention::LocalPredictiveAttention(const AttentionSizes& s, const RngInput& rng)
    : LocalAttention(s, rng),
      position(s.query_size, s.attention_size, rng, {.bias = false}),
      v(score_vector(s.attention_size, rng)) {}

Var LocalPredictiveAttention::centre(const Input& query, const AttentionMemory& memory) const {
  At at(query.caller());
  int64_t S = memory.annotations.size(0), B = memory.annotations.size(1);
  std::vector<int64_t> lengths = real_positions(memory.mask, B, S);
  Tensor length = Tensor::from({B}, {lengths.begin(), lengths.end()}, query.dtype());
  return sigmoid(sum(tanh(position(query)) * v, {.axes = {1}})) * Var(length);
}

Attended LocalPredictiveAttention::step(const Input& query, const AttentionMemory& memory,
                                        const AttentionState& state) const {
  At at(query.caller());
  int64_t S = memory.annotations.size(0), B = query.size(0);
  Var p = centre(query, memory);
  std::vector<int64_t> floor;
  for (int64_t b = 0; b < B; ++b) floor.push_back(static_cast<int64_t>(std::floor(p.value().at(b))));
  Tensor positions({1, S}, query.dtype());
  for (int64_t s = 0; s < S; ++s) positions.set(s, static_cast<double>(s));
  double sigma = static_cast<double>(options.window) / 2;
  Var gaussian = exp(pow(Var(positions) - reshape(p, {B, 1}), 2) * (-1 / (2 * sigma * sigma)));
  return attend(weigh(scaled_scores(query, memory, state), window(floor, memory)) * gaussian, memory, state);
}

}  // namespace gradus::nn
