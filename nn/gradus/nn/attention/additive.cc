#include <gradus/nn/attention/additive.h>

#include <cmath>

#include <gradus/nn/check.h>

namespace gradus::nn {

Parameter score_vector(int64_t n, const RngInput& rng) {
  At at(rng.caller());
  must_be_positive("score_vector", "n", n);
  double bound = 1.0 / std::sqrt(static_cast<double>(n));
  return Parameter(Tensor::uniform({n}, -bound, bound, rng));
}

AdditiveAttention::AdditiveAttention(const AttentionSizes& s, const RngInput& rng)
    : FormedAttention(s.options),
      query(s.query_size, s.attention_size, rng, {.bias = false}),
      key(s.annotation_size, s.attention_size, rng, {.bias = false}),
      v(score_vector(s.attention_size, rng)) {}

ConcatAttention::ConcatAttention(const AttentionSizes& s, const RngInput& rng)
    : FormedAttention(s.options),
      query_size(s.query_size),
      weight(std::move(
          Linear(s.query_size + s.annotation_size, s.attention_size, rng, {.bias = false}).weight)),
      v(score_vector(s.attention_size, rng)) {}

ScoreForm ConcatAttention::form() const {
  return {ScoreForm::Kind::additive, WeightPart::of_columns(weight, 0, query_size),
          WeightPart::of_columns(weight, query_size, weight.shape()[1]), v};
}

ConcatIdentityAttention::ConcatIdentityAttention(const AttentionSizes& s, const RngInput& rng)
    : FormedAttention(s.options),
      query(s.query_size, s.annotation_size, rng, {.bias = false}),
      v(score_vector(s.annotation_size, rng)) {}

}  // namespace gradus::nn
