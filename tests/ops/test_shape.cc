// Ops that move numbers: where each number goes, which results are views, gradients in their places, error
// texts.

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>

#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

Tensor counting(const Shape& shape) {
  Numbers v;
  for (int64_t i = 0; i < shape.numel(); ++i) v.push_back(static_cast<double>(i));
  return f64(shape, v);
}

}  // namespace

TEST_CASE("reshape is a view") {
  Var x = counting({2, 6});
  Var y = reshape(x, {3, -1});
  CHECK(y.shape() == Shape{3, 4});
  CHECK(y.value().raw() == x.value().raw());
  CHECK(op_error_of([&] {
          reshape(x, {5, 2});
        }) == "[reshape] the number of elements must stay: [2, 6] to [5, 2]");
  CHECK(op_error_of([&] {
          reshape(x, {5, -1});
        }) == "[reshape] axis 1 cannot be worked out: 12 elements over 5");
  CHECK(op_error_of([&] { reshape(x, {-1, -1}); }) == "[reshape] only one axis may be -1: of [2, 6]");
}

TEST_CASE("permute puts y's axis i at x's axis order[i]") {
  Var x = counting({2, 3, 4});
  for (const std::vector<int>& order : std::vector<std::vector<int>>{
           {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    Var y = permute(x, order);
    int64_t at = 0, index[3];
    for (index[0] = 0; index[0] < y.size(0); ++index[0])
      for (index[1] = 0; index[1] < y.size(1); ++index[1])
        for (index[2] = 0; index[2] < y.size(2); ++index[2]) {
          int64_t from = 0;
          for (int i = 0; i < 3; ++i) from += index[i] * x.shape().stride(order[i]);
          CHECK(y.value().at(at++) == static_cast<double>(from));
        }
  }
  Var large = counting({37, 50});
  Var turned = transpose(large, 0, 1);
  CHECK(turned.shape() == Shape{50, 37});
  CHECK(turned.value().at(7 * 37 + 20) == 20 * 50 + 7);
  CHECK(transpose(turned, 1, 0).value().to_vector() == large.value().to_vector());
  CHECK(transpose(Var(counting({3})), 0, 0).value().to_vector() == Numbers{0, 1, 2});
  CHECK(permute(Var(f64({}, {7})), {}).item() == 7);
  CHECK(permute(Var(Tensor::zeros({0, 3})), {1, 0}).shape() == Shape{3, 0});

  CHECK(op_error_of([&] { permute(x, {0, 0, 1}); }) ==
        "[permute] the order must name every axis once: shape [2, 3, 4], order [0, 0, 1]");
  CHECK(op_error_of([&] { permute(x, {0, 1}); }) ==
        "[permute] the order must name every axis once: shape [2, 3, 4], order [0, 1]");
  CHECK(op_error_of([&] { permute(x, {0, 1, 3}); }) ==
        "[permute] the order must name every axis once: shape [2, 3, 4], order [0, 1, 3]");
  CHECK(op_error_of([&] { transpose(x, 0, 3); }) == "[transpose] axis 3 does not exist: shape [2, 3, 4]");
}

TEST_CASE("concat and stack") {
  Var a = variable(f64({2, 2}, {1, 2, 3, 4})), b = variable(f64({2, 1}, {5, 6}));
  Var columns = concat({a, b}, 1);
  CHECK(columns.value().to_vector() == Numbers{1, 2, 5, 3, 4, 6});
  CHECK(gradient(columns, a, {1, 2, 3, 4, 5, 6}) == Numbers{1, 2, 4, 5});
  CHECK(gradient(columns, b, {1, 2, 3, 4, 5, 6}) == Numbers{3, 6});
  CHECK(concat({a, a}, 0).value().to_vector() == Numbers{1, 2, 3, 4, 1, 2, 3, 4});
  CHECK(gradient(concat({a, a}, 0), a, {1, 2, 3, 4, 10, 20, 30, 40}) == Numbers{11, 22, 33, 44});
  CHECK(concat({a}, -1).value().to_vector() == Numbers{1, 2, 3, 4});

  Var s = stack({a, a * 10}, 1);
  CHECK(s.shape() == Shape{2, 2, 2});
  CHECK(s.value().to_vector() == Numbers{1, 2, 10, 20, 3, 4, 30, 40});
  CHECK(stack({a, a * 10}, -1).value().to_vector() == Numbers{1, 10, 2, 20, 3, 30, 4, 40});
  CHECK(stack({Var(f64({}, {1})), Var(f64({}, {2}))}, 0).value().to_vector() == Numbers{1, 2});

  CHECK(op_error_of([&] {
          concat({a, b}, 0);
        }) == "[concat] all other axes must agree: [2, 2] and [2, 1] along axis 0");
  CHECK(op_error_of([&] { concat({a, Var(f64({2}, {1, 2}))}, 0); }) ==
        "[concat] all other axes must agree: [2, 2] and [2] along axis 0");
  CHECK(op_error_of([&] { concat({}, 0); }) == "[concat] needs at least one part");
  CHECK(op_error_of([&] {
          concat({a, Tensor::zeros({2, 2})}, 0);
        }) == "[concat] element types must agree: f64 and f32");
  CHECK(op_error_of([&] { concat({a, b}, 2); }) == "[concat] axis 2 does not exist: shape [2, 2]");
  CHECK(op_error_of([&] { stack({a, b}, 0); }) == "[stack] shapes must agree: [2, 2] and [2, 1]");
  CHECK(op_error_of([&] { stack({a}, 3); }) == "[stack] axis 3 cannot be added: shape [2, 2]");
}

TEST_CASE("slices of the leading axis are views, the others copies") {
  Var x = variable(counting({4, 3}));
  Var rows = slice(x, 0, 1, 3);
  CHECK(rows.value().raw() == static_cast<void*>(x.value().f64() + 3));
  CHECK(rows.value().to_vector() == Numbers{3, 4, 5, 6, 7, 8});
  CHECK(slice(x, 1, 1, 3).value().to_vector() == Numbers{1, 2, 4, 5, 7, 8, 10, 11});
  CHECK(select(x, 0, -0).value().raw() == x.value().raw());
  CHECK(select(x, 0, 2).shape() == Shape{3});
  CHECK(select(x, 1, 2).value().to_vector() == Numbers{2, 5, 8, 11});
  CHECK(slice(x, 0, 4, 4).shape() == Shape{0, 3});

  CHECK(gradient(rows, x) == Numbers{0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0});
  CHECK(gradient(slice(x, 1, 0, 2) * 1, x) == Numbers{1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0});
  CHECK(gradient(sum(select(x, 0, 1)) + sum(slice(x, 0, 0, 2)), x) ==
        Numbers{1, 1, 1, 2, 2, 2, 0, 0, 0, 0, 0, 0});

  CHECK(op_error_of([&] { slice(x, 0, 2, 5); }) == "[slice] entries 2 to 5 are outside axis 0: shape [4, 3]");
  CHECK(op_error_of([&] { slice(x, -1, -1, 2); }) ==
        "[slice] entries -1 to 2 are outside axis 1: shape [4, 3]");
  CHECK(op_error_of([&] { slice(x, 0, 2, 1); }) == "[slice] entries 2 to 1 are outside axis 0: shape [4, 3]");
  CHECK(op_error_of([&] { select(x, 0, 4); }) == "[select] entry 4 is outside axis 0: shape [4, 3]");
  CHECK(op_error_of([&] { select(x, 2, 0); }) == "[select] axis 2 does not exist: shape [4, 3]");
}

TEST_CASE("split") {
  Var x = variable(counting({2, 5}));
  std::vector<Var> parts = split(x, {2, 0, 3}, 1);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].value().to_vector() == Numbers{0, 1, 5, 6});
  CHECK(parts[1].shape() == Shape{2, 0});
  CHECK(parts[2].value().to_vector() == Numbers{2, 3, 4, 7, 8, 9});
  CHECK(gradient(parts[2], x) == Numbers{0, 0, 1, 1, 1, 0, 0, 1, 1, 1});
  CHECK(op_error_of([&] {
          split(x, {2, 2}, 1);
        }) == "[split] sizes must add up to axis 1: shape [2, 5], sizes [2, 2]");
  CHECK(op_error_of([&] {
          split(x, {6, -1}, 1);
        }) == "[split] sizes must add up to axis 1: shape [2, 5], sizes [6, -1]");
}

TEST_CASE("a loop over slices differentiates to one gradient") {
  const int64_t T = 50, n = 8;
  Var x = variable(counting({T, n}));
  Var total = sum(select(x, 0, 0));
  for (int64_t t = 1; t < T; ++t) total = total + static_cast<double>(t + 1) * sum(select(x, 0, t));
  Tensor g = backward(total)[x];
  for (int64_t i = 0; i < T * n; ++i) CHECK(g.at(i) == static_cast<double>(i / n + 1));
}

TEST_CASE("expand") {
  Var x = variable(f64({2, 1}, {1, 2}));
  CHECK(expand(x, {2, 3}).value().to_vector() == Numbers{1, 1, 1, 2, 2, 2});
  CHECK(gradient(expand(x, {2, 2, 3}), x) == Numbers{6, 6});
  CHECK(expand(x, {2, 0}).shape() == Shape{2, 0});
  CHECK(op_error_of([&] { expand(x, {3, 3}); }) == "[expand] shape does not stretch: [2, 1] to [3, 3]");
  CHECK(op_error_of([&] { expand(x, {2}); }) == "[expand] shape does not stretch: [2, 1] to [2]");
}

TEST_CASE("gathered rows may repeat") {
  Var x = variable(counting({3, 2}));
  Var y = gather_rows(x, Tensor::from_ids({4}, {2, 0, 2, 2}));
  CHECK(y.value().to_vector() == Numbers{4, 5, 0, 1, 4, 5, 4, 5});
  CHECK(gradient(y, x, {1, 2, 3, 4, 5, 6, 7, 8}) == Numbers{3, 4, 0, 0, 13, 16});
  Gradients grads = backward(y, {.seed = Tensor::ones({4, 2}, DType::f64)});
  CHECK_FALSE(grads.find(x)->dense.defined());  // stays sparse for a leaf
  REQUIRE(grads.find(x)->rows.size() == 1);
  CHECK(grads.find(x)->rows[0].rows.shape() == Shape{4, 2});
  CHECK(gather_rows(x, Tensor::from_ids({0}, {})).shape() == Shape{0, 2});

  CHECK(op_error_of([&] {
          gather_rows(x, Tensor::from_ids({2}, {0, 3}));
        }) == "[gather_rows] indices must be in 0 .. 2: 3");
  CHECK(op_error_of([&] { gather_rows(x, Tensor::from_ids({1}, {-1})); }) ==
        "[gather_rows] indices must be in 0 .. 2: -1");
  CHECK(op_error_of([&] { gather_rows(x, Tensor::zeros({2})); }) ==
        "[gather_rows] indices must be i32 with one axis: f32 [2]");
  CHECK(op_error_of([&] { gather_rows(x, Tensor::from_ids({1, 1}, {0})); }) ==
        "[gather_rows] indices must be i32 with one axis: i32 [1, 1]");
  CHECK(op_error_of([&] { gather_rows(Var(f64({}, {1})), Tensor::from_ids({1}, {0})); }) ==
        "[gather_rows] a scalar has no rows");
}
