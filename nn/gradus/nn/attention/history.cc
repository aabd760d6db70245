#include <gradus/nn/attention/history.h>

#include <cmath>

#include <gradus/nn/attention/additive.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention_scores.h>
#include <gradus/ops/location_features.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>

namespace gradus::nn {

LocationAwareAttention::LocationAwareAttention(const AttentionSizes& s, const RngInput& rng)
    : ScoredAttention(s.options),
      query(s.query_size, s.attention_size, rng, {}),
      key(s.annotation_size, s.attention_size, rng, {.bias = false}),
      location(s.options.filters, s.attention_size, rng, {.bias = false}),
      v(score_vector(s.attention_size, rng)) {
  At at(rng.caller());
  int64_t width = s.options.filter_width;
  if (width < 1 || width % 2 == 0)
    fail("LocationAwareAttention", "filter_width must be odd and positive: " + std::to_string(width));
  double bound = 1 / std::sqrt(static_cast<double>(width));
  filters = Parameter(Tensor::uniform({s.options.filters, width}, -bound, bound, rng));
}

AttentionState LocationAwareAttention::start(const AttentionMemory& memory) const {
  const Var& h = memory.annotations;
  // Equal scores: equal weights.
  return {.weights = softmax(Tensor::zeros({h.size(1), h.size(0)}, h.dtype()), {.mask = memory.mask})};
}

Var LocationAwareAttention::scores(const Input& q, const AttentionMemory& memory,
                                   const AttentionState& state) const {
  At at(q.caller());
  return additive_scores(query(q), memory.keys + location(location_features(state.weights, filters)), v);
}

CoverageAttention::CoverageAttention(const AttentionSizes& s, const RngInput& rng)
    : ScoredAttention(s.options),
      query(s.query_size, s.attention_size, rng, {.bias = false}),
      key(s.annotation_size, s.attention_size, rng, {.bias = false}),
      coverage(1, s.attention_size, rng, {.bias = false}),
      v(score_vector(s.attention_size, rng)) {}

AttentionState CoverageAttention::start(const AttentionMemory& memory) const {
  const Var& h = memory.annotations;
  return {.coverage = Var(Tensor::zeros({h.size(1), h.size(0)}, h.dtype()))};
}

Var CoverageAttention::scores(const Input& q, const AttentionMemory& memory,
                              const AttentionState& state) const {
  At at(q.caller());
  int64_t B = state.coverage.size(0), S = state.coverage.size(1);
  Var c = reshape(transpose(state.coverage, 0, 1), {S, B, 1});
  return additive_scores(query(q), memory.keys + coverage(c), v);
}

}  // namespace gradus::nn
