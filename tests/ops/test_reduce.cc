// Reductions against numbers worked out by hand, ties, NaN, infinities, empty axes, and error texts.

#include <cmath>

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>

#include "../about.h"
#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

// 0 .. 23 as [2, 3, 4].
Tensor counting() {
  Numbers v;
  for (int i = 0; i < 24; ++i) v.push_back(i);
  return f64({2, 3, 4}, v);
}

}  // namespace

TEST_CASE("sum over any axes") {
  Var x = counting();
  CHECK(sum(x).item() == 276);
  CHECK(sum(x).shape() == Shape{});
  CHECK(sum(x, {.axes = {0}}).value().to_vector() == Numbers{12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34});
  CHECK(sum(x, {.axes = {1}}).value().to_vector() == Numbers{12, 15, 18, 21, 48, 51, 54, 57});
  CHECK(sum(x, {.axes = {-1}}).value().to_vector() == Numbers{6, 22, 38, 54, 70, 86});
  CHECK(sum(x, {.axes = {0, 2}}).value().to_vector() == Numbers{60, 92, 124});
  CHECK(sum(x, {.axes = {2, 0}, .keep_dims = true}).shape() == Shape{1, 3, 1});
  CHECK(sum(x, {.keep_dims = true}).shape() == Shape{1, 1, 1});
  CHECK(sum(x, {.axes = {1}}).shape() == Shape{2, 4});
}

TEST_CASE("sums of very many f32 numbers keep their digits, whatever the axes") {
  auto sum_of_tenths = [](const Shape& shape, const std::vector<int>& axes) {
    return sum(Tensor::full(shape, 0.1), {.axes = axes}).value().at(0) / double{0.1f};
  };
  CHECK(sum_of_tenths({300000, 2}, {0}) == about(300000, 2e-5));
  CHECK(sum_of_tenths({2, 300000, 2}, {1}) == about(300000, 2e-5));
  CHECK(sum_of_tenths({150000, 2, 2}, {0, 2}) == about(300000, 2e-5));
  CHECK(sum_of_tenths({150000, 2, 2, 2}, {0, 2}) == about(300000, 2e-5));
  CHECK(sum_of_tenths({300000}, {}) == about(300000, 2e-5));
}

TEST_CASE("mean and max over any axes") {
  Var x = counting();
  CHECK(mean(x).item() == 11.5);
  CHECK(mean(x, {.axes = {1}}).value().to_vector() == Numbers{4, 5, 6, 7, 16, 17, 18, 19});
  CHECK(max(x).item() == 23);
  CHECK(max(x, {.axes = {0}}).value().to_vector() == Numbers{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
  CHECK(max(x, {.axes = {0, -1}, .keep_dims = true}).value().to_vector() == Numbers{15, 19, 23});
  CHECK(max(-x, {.axes = {1}}).value().to_vector() == Numbers{0, -1, -2, -3, -12, -13, -14, -15});
}

TEST_CASE("gradients of sums and means are stretched back") {
  Var x = variable(f64({2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(gradient(sum(x), x) == Numbers{1, 1, 1, 1, 1, 1});
  CHECK(gradient(sum(x, {.axes = {0}}), x, {1, 2, 3}) == Numbers{1, 2, 3, 1, 2, 3});
  CHECK(gradient(sum(x, {.axes = {1}}), x, {1, 2}) == Numbers{1, 1, 1, 2, 2, 2});
  CHECK(gradient(mean(x, {.axes = {1}, .keep_dims = true}), x, {3, 6}) == Numbers{1, 1, 1, 2, 2, 2});
}

TEST_CASE("max shares its gradient between ties") {
  Var x = variable(f64({2, 4}, {1, 5, 5, 0, 7, 7, 7, 7}));
  CHECK(gradient(max(x, {.axes = {1}}), x, {1, 2}) == Numbers{0, 0.5, 0.5, 0, 0.5, 0.5, 0.5, 0.5});
  CHECK(gradient(max(x), x) == Numbers{0, 0, 0, 0, 0.25, 0.25, 0.25, 0.25});
}

TEST_CASE("max keeps NaN and infinities") {
  CHECK(std::isnan(max(Var(f64({3}, {1, kNaN, kInf}))).item()));
  CHECK(max(Var(f64({3}, {1, kInf, -kInf}))).item() == kInf);
  CHECK(max(Var(f64({2}, {-kInf, -kInf}))).item() == -kInf);
  CHECK(std::isnan(max(Var(f64({2, 2}, {kNaN, 1, 2, 3})), {.axes = {0}}).value().at(0)));
  Var x = variable(f64({3}, {kNaN, 1, kNaN}));
  CHECK(gradient(max(x), x) == Numbers{0.5, 0, 0.5});
}

TEST_CASE("logsumexp neither overflows nor makes NaN of infinities") {
  for (DType type : {DType::f32, DType::f64}) {
    CHECK(logsumexp(Var(Tensor::from({2}, {1000, 1000}, type))).item() ==
          about(1000 + std::log(2.0)));
    CHECK(logsumexp(Var(Tensor::from({2}, {-1000, -1000}, type))).item() ==
          about(-1000 + std::log(2.0)));
    CHECK(logsumexp(Var(Tensor::from({2}, {-kInf, 3}, type))).item() == 3);
    CHECK(logsumexp(Var(Tensor::from({2}, {kInf, 3}, type))).item() == kInf);
    Var none = variable(Tensor::from({2, 2}, {-kInf, -kInf, 0, 0}, type));
    Var y = logsumexp(none, {.axes = {1}});
    CHECK(y.value().at(0) == -kInf);
    CHECK(gradient(y, none) == Numbers{0, 0, 0.5, 0.5});
  }
  CHECK(std::isnan(logsumexp(Var(f64({2}, {kNaN, 1}))).item()));
}

TEST_CASE("empty axes") {
  Var none = Tensor::zeros({2, 0}, DType::f64);
  CHECK(sum(none, {.axes = {1}}).value().to_vector() == Numbers{0, 0});
  CHECK(sum(none).item() == 0);
  CHECK(sum(none, {.axes = {0}}).shape() == Shape{0});
  CHECK(std::isnan(mean(none).item()));
  CHECK(logsumexp(none, {.axes = {1}}).value().to_vector() == Numbers{-kInf, -kInf});
  CHECK(op_error_of([&] { max(none); }) == "[max] nothing to take the maximum of: shape [2, 0]");
  CHECK(max(none, {.axes = {0}}).shape() == Shape{0});
}

TEST_CASE("f32 sums do not lose small numbers in a large total") {
  const int64_t n = 1 << 20;
  Tensor x = Tensor::full({n}, 0.1);
  CHECK(sum(Var(x)).item() == about(n * static_cast<double>(0.1f), 1e-7));
  CHECK(mean(Var(x)).item() == about(0.1f, 1e-7));
}

TEST_CASE("argmax takes the first of equals along the last axis") {
  Tensor y = argmax(f32({3, 4}, {1, 5, 5, 0, 7, 7, 7, 7, -1, kNaN, 9, kNaN}));
  CHECK(y.dtype() == DType::i32);
  CHECK(y.shape() == Shape{3});
  CHECK(y.to_vector() == Numbers{1, 0, 1});
  CHECK(argmax(f64({2, 1, 2}, {-2, -1, -kInf, -kInf})).to_vector() == Numbers{1, 0});
  CHECK(argmax(f32({3}, {1, 2, 0})).shape() == Shape{});
  CHECK(argmax(Tensor::from_ids({3}, {1, 2, 0})).item() == 1);
  CHECK(argmax(Tensor::zeros({0, 2})).shape() == Shape{0});
  CHECK(error_of([] {
          argmax(Tensor::zeros({2, 0}));
        }) == "[argmax] the last axis must have entries: shape [2, 0]");
  CHECK(error_of([] { argmax(Tensor::zeros({})); }) == "[argmax] the last axis must have entries: shape []");
}

TEST_CASE("misuse of reductions is named") {
  Var x = Tensor::zeros({2, 3});
  CHECK(op_error_of([&] { sum(x, {.axes = {2}}); }) == "[sum] axis 2 does not exist: shape [2, 3]");
  CHECK(op_error_of([&] { mean(x, {.axes = {-3}}); }) == "[mean] axis -3 does not exist: shape [2, 3]");
  CHECK(op_error_of([&] { max(x, {.axes = {1, -1}}); }) == "[max] axis 1 is named twice: shape [2, 3]");
  CHECK(op_error_of([] { logsumexp(Var(Tensor::zeros({2}, DType::i32))); }) ==
        "[logsumexp] needs f32 or f64 numbers: i32 [2]");
  CHECK(op_error_of([] { sum(Var()); }) ==
        "[sum] the input is undefined; hint: moved from, or never computed?");
}

TEST_CASE("max and argmax find one number, or NaN, wherever it stands") {
  const int64_t n = 21;
  for (int64_t at = 0; at < n; ++at)
    for (double special : {5.0, kNaN, kInf}) {
      Tensor x = Tensor::zeros({n});
      x.set(at, special);
      double found = max(Var(x)).item();
      CHECK((found == special || (std::isnan(found) && std::isnan(special))));
      CHECK(argmax(x).item() == static_cast<double>(at));
    }
}
