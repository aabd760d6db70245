#include <gradus/memory.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/scaled_dot_product_attention.h>
#include <gradus/ops/shape.h>

#include <cmath>
#include <limits>

#include "../about.h"
#include "../quick_doctest.h"
#include "helpers.h"

using namespace gradus;
using helpers::error_of;
using helpers::random;

namespace {

struct Outcome {
  Tensor output, dq, dk, dv;
};

template <class F>
Outcome outcome(const Tensor& q, const Tensor& k, const Tensor& v, F&& f) {
  Var a = variable(q), b = variable(k), c = variable(v);
  Var y = f(a, b, c);
  Gradients grads = backward(y, {.seed = random(y.shape(), y.dtype(), 9)});
  return {y.value(), grads[a], grads[b], grads[c]};
}

void check_against_reference(const Tensor& q, const Tensor& k, const Tensor& v,
                             const ScaledDotProductOptions& o) {
  Outcome got = outcome(q, k, v, [&](auto&... x) { return scaled_dot_product_attention(x..., o).output; });
  Outcome want =
      outcome(q, k, v, [&](auto&... x) { return reference::scaled_dot_product_attention(x..., o); });
  CHECK(all_close(got.output, want.output, 1e-10, 1e-12));
  CHECK(all_close(got.dq, want.dq, 1e-10, 1e-12));
  CHECK(all_close(got.dk, want.dk, 1e-10, 1e-12));
  CHECK(all_close(got.dv, want.dv, 1e-10, 1e-12));
}

}  // namespace

TEST_CASE("scaled_dot_product_attention: all registered cases") {
  CHECK_OP_CASES("scaled_dot_product_attention", 4);
  CHECK_OP_CASES("packed_self_attention", 1);
  CHECK_OP_CASES("packed_cross_attention", 1);
}

TEST_CASE("more queries than go through at once, and products large enough for the BLAS") {
  Tensor mask = length_mask(Tensor::from_ids({2}, {150, 97}), 150);
  mask.u8()[150 + 20] = 0;
  for (bool causal : {false, true}) {
    CAPTURE(causal);
    check_against_reference(random({140, 2, 80}), random({150, 2, 80}, DType::f64, 2),
                            random({150, 2, 12}, DType::f64, 3),
                            {.heads = 2, .mask = mask, .causal = causal});
  }
}

TEST_CASE("every mask of three sentences of three words") {
  Tensor q = random({2, 3, 4}), k = random({3, 3, 4}, DType::f64, 2), v = random({3, 3, 2}, DType::f64, 3);
  for (unsigned bits = 0; bits < 512; ++bits) {
    CAPTURE(bits);
    Tensor mask({3, 3}, DType::u8);
    for (int i = 0; i < 9; ++i) mask.u8()[i] = bits >> i & 1;
    check_against_reference(q, k, v, {.heads = 2, .mask = mask});
  }
}

TEST_CASE("a query or two, whose keys are not laid out anew") {
  for (int64_t T : {1, 2, 3}) {
    CAPTURE(T);
    check_against_reference(random({T, 2, 6}), random({5, 2, 6}, DType::f64, 2),
                            random({5, 2, 6}, DType::f64, 3), {.heads = 3, .causal = true});
  }
}

TEST_CASE("weights of every head sum to 1 over allowed keys; a sentence without words has none") {
  Tensor mask = length_mask(Tensor::from_ids({3}, {4, 0, 2}), 4);
  ScaledDotProduct out =
      packed_self_attention(random({4, 3, 12}), {.heads = 2, .mask = mask, .causal = true, .weights = true});
  REQUIRE(out.weights.shape() == Shape{3, 2, 4, 4});
  int64_t lengths[] = {4, 0, 2};
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t t = 0; t < 4; ++t) {
        double sum = 0;
        for (int64_t s = 0; s < 4; ++s) {
          double w = out.weights.at(((b * 2 + h) * 4 + t) * 4 + s);
          if (s > t || s >= lengths[b]) CHECK(w == 0);
          sum += w;
        }
        CHECK(sum == about(lengths[b] ? 1 : 0));
      }
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t e = 0; e < 4; ++e) CHECK(out.output.value().at((t * 3 + 1) * 4 + e) == 0);
}

TEST_CASE("keys behind the last real one are never read") {
  Tensor mask = length_mask(Tensor::from_ids({1}, {2}), 4);
  Tensor q = random({3, 1, 4}), k = random({4, 1, 4}), v = random({4, 1, 4});
  for (int64_t i = 8; i < 16; ++i) k.set(i, NAN), v.set(i, std::numeric_limits<double>::infinity());
  Outcome got = outcome(q, k, v, [&](auto&... x) {
    return scaled_dot_product_attention(x..., {.heads = 2, .mask = mask}).output;
  });
  for (const Tensor* t : {&got.output, &got.dq, &got.dk, &got.dv}) CHECK(all_finite(*t));
  CHECK(max_abs_difference(got.dk.rows(2, 4), Tensor::zeros({2, 1, 4}, DType::f64)) == 0);
}

TEST_CASE("the weights of a long text never stand in memory") {
  NoGrad guard;
  Tensor qkv = random({4096, 1, 24}, DType::f32);
  int64_t before = memory_stats().in_use;
  Var y = packed_self_attention(qkv, {.heads = 2}).output;
  // All of them would be 2 x 4096 x 4096 numbers of 4 bytes; 64 rows of one head are a 128th of that.
  CHECK(memory_stats().peak - before < 4096 * 4096);
}

TEST_CASE("scaled_dot_product_attention: what is refused") {
  auto text = [](const Shape& q, const Shape& k, const Shape& v, const ScaledDotProductOptions& o = {}) {
    return error_of([&] { scaled_dot_product_attention(random(q), random(k), random(v), o); });
  };
  CHECK(text({3, 2, 4}, {5, 2, 6}, {5, 2, 6}) ==
        "[scaled_dot_product_attention] keys must be [S, B, E] for queries [T, B, E]: queries [3, 2, 4], "
        "keys [5, 2, 6]");
  CHECK(text({3, 2, 4}, {5, 2, 4}, {4, 2, 4}) ==
        "[scaled_dot_product_attention] values must be [S, B, Ev] for keys [S, B, E]: keys [5, 2, 4], values "
        "[4, 2, 4]");
  CHECK(text({3, 4}, {5, 2, 4}, {5, 2, 4}) ==
        "[scaled_dot_product_attention] queries must have three axes, time first: [3, 4]");
  CHECK(text({3, 2, 4}, {5, 2, 4}, {5, 2, 4}, {.heads = 3}) ==
        "[scaled_dot_product_attention] queries must divide into 3 heads: 4 columns");
  CHECK(
      text({6, 2, 4}, {5, 2, 4}, {5, 2, 4}, {.causal = true}) ==
      "[scaled_dot_product_attention] causal queries are the last of the keys' positions: 6 queries, 5 keys");
  CHECK(text({3, 2, 4}, {5, 2, 4}, {5, 2, 4}, {.mask = Tensor::ones({2, 4}, DType::u8)}) ==
        "[scaled_dot_product_attention] the mask must be u8 [B, S] = [2, 5]: u8 [2, 4]");
  CHECK(error_of([] { packed_self_attention(random({3, 2, 10})); }) ==
        "[scaled_dot_product_attention] queries, keys, values must divide into 1 heads: 10 columns of 3 "
        "operands");
  CHECK(error_of([] { packed_cross_attention(random({3, 2, 4}), random({5, 2, 4})); }) ==
        "[scaled_dot_product_attention] keys and values must be [S, B, 2E] for queries [T, B, E]: queries "
        "[3, 2, 4], "
        "keys and values [5, 2, 4]");
}
