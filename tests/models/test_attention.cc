#include <doctest/doctest.h>

#include <cmath>

#include <gradus/nn/attention/additive.h>
#include <gradus/nn/attention/attention.h>
#include <gradus/nn/attention/multiplicative.h>
#include <gradus/ops.h>

using namespace gradus;

namespace {

constexpr int64_t S = 4, B = 3, Q = 6, D = 6, A = 5;

// For gradcheck: annotations and query in, context out.
struct Attender {
  std::unique_ptr<nn::Attention> attention;
  Tensor mask;
  Var operator()(const Var& annotations, const Var& query) const {
    return attention->step(query, attention->prepare(annotations, mask)).context;
  }
  void params(nn::ParamVisitor& visit) { visit("attention", *attention); }
};

Tensor mask() { return length_mask(Tensor::from_ids({B}, {4, 0, 2}), S); }

}  // namespace

TEST_CASE("every attention passes the gradient check, masked and with an empty row") {
  for (const std::string& name : nn::attention_names()) {
    CAPTURE(name);
    Rng rng(3);
    Attender layer{nn::make_attention(name, {Q, D, A}, rng), mask()};
    auto report = nn::gradcheck(layer, {Tensor::uniform({S, B, D}, -1, 1, rng), Tensor::uniform({B, Q}, -1, 1, rng)});
    CHECK_MESSAGE(report.ok, report.message);
  }
}

TEST_CASE("weights sum to 1 over real positions and are 0 elsewhere") {
  for (const std::string& name : nn::attention_names()) {
    CAPTURE(name);
    Rng rng(4);
    auto attention = nn::make_attention(name, {Q, D, A}, rng);
    auto memory = attention->prepare(Tensor::uniform({S, B, D}, -1, 1, rng), mask());
    AttentionStep step = attention->step(Tensor::uniform({B, Q}, -1, 1, rng), memory);
    int64_t lengths[] = {4, 0, 2};
    for (int64_t b = 0; b < B; ++b) {
      double sum = 0;
      for (int64_t s = 0; s < S; ++s) {
        double w = step.weights.at(b * S + s);
        if (s >= lengths[b]) CHECK(w == 0);
        sum += w;
      }
      CHECK(sum == doctest::Approx(lengths[b] ? 1 : 0).epsilon(1e-5));
    }
    for (int64_t d = 0; d < D; ++d) CHECK(step.context.value().at(D + d) == 0);  // nothing to look at
  }
}

TEST_CASE("masked annotations may be NaN") {
  for (const std::string& name : nn::attention_names()) {
    CAPTURE(name);
    Rng rng(5);
    auto attention = nn::make_attention(name, {Q, D, A}, rng);
    Tensor annotations = Tensor::uniform({S, B, D}, -1, 1, rng);
    for (int64_t d = 0; d < D; ++d) annotations.set((3 * B + 2) * D + d, NAN);  // sentence 2 has two words
    AttentionStep step = attention->step(Tensor::uniform({B, Q}, -1, 1, rng), attention->prepare(annotations, mask()));
    CHECK(all_finite(step.context.value()));
  }
}

TEST_CASE("concat with W = [W1 W2] is additive attention exactly") {
  Rng rng(6);
  nn::AdditiveAttention additive({Q, D, A}, rng);
  nn::ConcatAttention concat({Q, D, A}, rng);
  Tensor w({A, Q + D}, DType::f32);
  for (int64_t a = 0; a < A; ++a) {
    for (int64_t q = 0; q < Q; ++q) w.set(a * (Q + D) + q, additive.query.weight.value().at(a * Q + q));
    for (int64_t d = 0; d < D; ++d) w.set(a * (Q + D) + Q + d, additive.key.weight.value().at(a * D + d));
  }
  concat.weight.assign(w);
  concat.v.assign(additive.v.value().clone());
  Tensor annotations = Tensor::uniform({S, B, D}, -1, 1, rng), query = Tensor::uniform({B, Q}, -1, 1, rng);
  AttentionStep x = additive.step(query, additive.prepare(annotations, mask()));
  AttentionStep y = concat.step(query, concat.prepare(annotations, mask()));
  CHECK(max_abs_difference(x.context.value(), y.context.value()) == 0);
  CHECK(max_abs_difference(x.weights, y.weights) == 0);
}

TEST_CASE("errors of the attentions") {
  Rng rng(1);
  CHECK_THROWS_WITH(nn::make_attention("foo", {Q, D, A}, rng),
                    "[make_attention] unknown attention \"foo\": one of bahdanau, dot, general, concat");
  CHECK_THROWS_WITH(nn::make_attention("dot", {4, 8, A}, rng),
                    "[DotAttention] query and annotations must have one size: 4 and 8 (general attention has a matrix between them)");
  auto attention = nn::make_attention("general", {Q, D, A}, rng);
  auto memory = attention->prepare(Tensor::zeros({S, B, D}), {});
  CHECK_THROWS_WITH(attention->step(Tensor::zeros({B, Q + 1}), memory),
                    "[multiplicative_attention] the query must be [B, A] = [3, 6]: query [3, 7], keys [4, 3, 6]");
}
