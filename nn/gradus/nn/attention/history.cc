#include <gradus/nn/attention/history.h>

#include <cmath>

#include <gradus/nn/attention/additive.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention_scores.h>
#include <gradus/ops/location_features.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>

namespace gradus::nn {
namespace {

// What a state has of the steps before. @throws Error where it has none of it.
const Var& known(const char* attention, const Var& part) {
  if (!part.defined()) fail(attention, "the state is not of this attention", "the first is start(memory)");
  return part;
}

}  // namespace

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
  const Var& before = known("LocationAwareAttention", state.weights);
  return additive_scores(query(q), memory.keys + location(location_features(before, filters)), v);
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
  const Var& seen = known("CoverageAttention", state.coverage);
  Var c = reshape(transpose(seen, 0, 1), {seen.size(1), seen.size(0), 1});
  return additive_scores(query(q), memory.keys + coverage(c), v);
}

}  // namespace gradus::nn
