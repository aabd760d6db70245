#include <gradus/nn/multihead_attention.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/shape.h>

#include "../about.h"
#include "helpers.h"

using namespace gradus;
using test::random;

namespace {

nn::MultiheadAttention in_double(int64_t E, int64_t heads,
                                 const nn::MultiheadAttentionOptions& options = {}) {
  Rng rng(7);
  nn::MultiheadAttention attention(E, heads, rng, options);
  nn::to(attention, DType::f64);
  return attention;
}

}  // namespace

TEST_CASE("MultiheadAttention has torch's parameters") {
  Rng rng(1);
  auto names = [](const nn::MultiheadAttention& attention) {
    std::vector<std::string> out;
    for (auto& [name, tensor] : nn::state_dict(attention)) out.push_back(name + " " + tensor.shape().str());
    return out;
  };
  CHECK(names({8, 2, rng}) == std::vector<std::string>{"in_proj_weight [24, 8]", "in_proj_bias [24]",
                                                       "out_proj.weight [8, 8]", "out_proj.bias [8]"});
  CHECK(names({8, 2, rng, {.kdim = 5, .vdim = 6, .bias = false}}) ==
        std::vector<std::string>{"q_proj_weight [8, 8]", "k_proj_weight [8, 5]", "v_proj_weight [8, 6]",
                                 "out_proj.weight [8, 8]"});
}

TEST_CASE("MultiheadAttention: gradients of the three forms") {
  nn::MultiheadAttention joint = in_double(4, 2), apart = in_double(4, 2, {.kdim = 3, .vdim = 5});
  CHECK_GRADIENTS(nn::gradcheck(joint, {random({3, 2, 4}, 1), random({4, 2, 4}, 2), random({4, 2, 4}, 3)}));
  CHECK_GRADIENTS(nn::gradcheck(apart, {random({3, 2, 4}, 1), random({4, 2, 3}, 2), random({4, 2, 5}, 3)}));
  CHECK_GRADIENTS(nn::gradcheck(
      joint, [&, x = random({3, 2, 4}, 1)] { return joint(x, x, x, {.causal = true}).output; }));
}

TEST_CASE("one product or three: the same projections") {
  nn::MultiheadAttention attention = in_double(6, 3);
  Tensor x = random({4, 2, 6}, 1), memory = random({5, 2, 6}, 2),
         mask = length_mask(Tensor::from_ids({2}, {5, 3}), 5);
  auto both = [&](const Var& q, const Var& a, const Var& b, const nn::AttendOptions& o) {
    nn::MultiheadAttentionOutput y = attention(q, a, a, o), z = attention(q, a, b, o);
    CHECK(all_close(y.output.value(), z.output.value(), 1e-12, 1e-12));
    CHECK(all_close(y.weights, z.weights, 1e-12, 1e-12));
  };
  both(x, memory, memory.clone(), {.mask = mask, .weights = true});
  both(x, x, x.clone(), {.causal = true, .weights = true});
}

TEST_CASE("the mean over heads is what it says") {
  nn::MultiheadAttention attention = in_double(6, 3);
  nn::MultiheadAttentionOutput y =
      attention(random({2, 2, 6}, 1), random({4, 2, 6}, 2), random({4, 2, 6}, 3), {.weights = true});
  REQUIRE(y.head_weights.shape() == Shape{2, 3, 2, 4});
  REQUIRE(y.weights.shape() == Shape{2, 2, 4});
  for (int64_t t = 0; t < 2; ++t)
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t s = 0; s < 4; ++s) {
        double mean = 0;
        for (int64_t h = 0; h < 3; ++h) mean += y.head_weights.at(((b * 3 + h) * 2 + t) * 4 + s) / 3;
        CHECK(y.weights.at((t * 2 + b) * 4 + s) == about(mean));
      }
}

TEST_CASE("a temperature of 1 / sqrt(d) takes the scale away; a call's own scale goes before the layer's") {
  NoGrad guard;
  nn::MultiheadAttention scaled = in_double(6, 2),
                         bare = in_double(6, 2, {.temperature = 1 / std::sqrt(3.0)});
  CHECK(bare.scale == about(1));
  const Tensor x = random({4, 3, 6}, 1);
  const nn::AttendOptions as_wide{.causal = true, .scale = 1};
  const ScaledDotProduct composed{
      gradus::reference::scaled_dot_product_attention(
          bare.project_queries(x), slice(bare.project_memory(x), 2, 0, 6),
          slice(bare.project_memory(x), 2, 6, 12), {.heads = 2, .scale = 1, .causal = true}),
      {}};
  const Tensor expected = bare.finish(composed).output.value();
  CHECK(all_close(bare(x, x, x, {.causal = true}).output.value(), expected, 1e-12, 1e-12));
  CHECK(all_close(scaled(x, x, x, as_wide).output.value(), expected, 1e-12, 1e-12));
  CHECK(max_abs_difference(scaled(x, x, x, {.causal = true}).output.value(), expected) > 1e-4);
  nn::KeyValueCache cache;
  for (int64_t t = 0; t < 4; ++t)
    CHECK(all_close(bare.step(x.rows(t, t + 1), cache).value(), expected.rows(t, t + 1), 1e-12, 1e-12));
}

TEST_CASE("word by word with a cache is all at once") {
  NoGrad guard;
  nn::MultiheadAttention attention = in_double(6, 2);
  Tensor x = random({40, 3, 6}, 1), all = attention(x, x, x, {.causal = true}).output.value();
  nn::KeyValueCache cache;
  for (int64_t t = 0; t < 40; ++t)
    CHECK(all_close(attention.step(x.rows(t, t + 1), cache).value(), all.rows(t, t + 1), 1e-12, 1e-12));
  CHECK(cache.length == 40);
  // A copy goes its own way, and leaves the other as it was.
  nn::KeyValueCache one, two;
  for (int64_t t = 0; t < 3; ++t) attention.step(x.rows(t, t + 1), one);
  two = one;
  attention.step(x.rows(9, 10), two);
  CHECK(all_close(attention.step(x.rows(3, 4), one).value(), all.rows(3, 4), 1e-12, 1e-12));
  attention.step(x.rows(9, 10), two);
  CHECK(all_close(attention.step(x.rows(4, 5), one).value(), all.rows(4, 5), 1e-12, 1e-12));
}

TEST_CASE("a cache follows the rows that are chosen") {
  NoGrad guard;
  nn::MultiheadAttention attention = in_double(6, 2);
  Tensor x = random({4, 3, 6}, 1);
  nn::KeyValueCache cache, chosen;
  std::vector<int64_t> rows = {2, 0, 0, 1};
  auto of_rows = [&](const Tensor& t) {  // [1, 3, 6] -> [1, 4, 6]
    return gather_rows(t.row(0), Tensor::from_ids({4}, {2, 0, 0, 1})).value().reshape({1, 4, 6});
  };
  for (int64_t t = 0; t < 3; ++t) {
    attention.step(x.rows(t, t + 1), cache);
    attention.step(of_rows(x.rows(t, t + 1)), chosen);
  }
  cache.select(rows);
  Tensor next = of_rows(x.rows(3, 4));
  CHECK(max_abs_difference(attention.step(next, cache).value(), attention.step(next, chosen).value()) == 0);
}

TEST_CASE("MultiheadAttention: what is refused") {
  Rng rng(1);
  CHECK(test::error_of([&] { nn::MultiheadAttention(10, 4, rng); }) ==
        "[MultiheadAttention] embed_dim must be a multiple of num_heads: 10, 4; hint: 2 or 5 heads?");
  CHECK(test::error_of([&] { nn::MultiheadAttention(8, 0, rng); }) ==
        "[MultiheadAttention] num_heads must be positive: 0");
  CHECK(test::error_of([&] { nn::MultiheadAttention(8, 2, rng, {.temperature = 0}); }) ==
        "[MultiheadAttention] temperature must be positive: 0");
  nn::MultiheadAttention attention(4, 2, rng);
  const Var x = Tensor::zeros({2, 4});
  CHECK(test::error_of([&] { attention(x, x, x); }) ==
        "[MultiheadAttention] the query must be [T, B, E], time first: [2, 4]");
}
