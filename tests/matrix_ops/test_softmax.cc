#include <cmath>
#include <limits>

#include <gradus/ops/reduce.h>
#include <gradus/ops/softmax.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "helpers.h"

using namespace gradus;
using helpers::op_error_of;
using helpers::random;

namespace {

const double not_a_number = std::numeric_limits<double>::quiet_NaN();
const double inf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("softmax and log_softmax: all registered cases") {
  CHECK_OP_CASES("softmax", 5);
  CHECK_OP_CASES("log_softmax", 4);
}

TEST_CASE("large scores do not overflow, equal ones share") {
  for (DType dtype : {DType::f32, DType::f64}) {
    Tensor x = Tensor::from({2, 3}, {1e4, 1e4, -1e4, -3e4, -3e4, -3e4}, dtype);
    Tensor y = softmax(x).value(), l = log_softmax(x).value();
    CHECK(y.at(0) == 0.5);
    CHECK(y.at(2) == 0);
    CHECK(y.at(3) == about(1.0 / 3));
    CHECK(l.at(0) == about(-std::log(2)));
    CHECK(l.at(2) == about(-2e4 - std::log(2)));
    CHECK(l.at(5) == about(-std::log(3)));
  }
}

TEST_CASE("an axis that is not the last") {
  Tensor x = random({2, 3, 4});
  Tensor middle = softmax(x, {.axis = 1}).value(), also = softmax(x, {.axis = -2}).value();
  CHECK(max_abs_difference(middle, also) == 0);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t k = 0; k < 4; ++k) {
      double total = 0;
      for (int64_t i = 0; i < 3; ++i) total += std::exp(x.at((b * 3 + i) * 4 + k));
      for (int64_t i = 0; i < 3; ++i) {
        CHECK(middle.at((b * 3 + i) * 4 + k) == about(std::exp(x.at((b * 3 + i) * 4 + k)) / total));
        CHECK(log_softmax(x, {.axis = 1}).value().at((b * 3 + i) * 4 + k) ==
              about(x.at((b * 3 + i) * 4 + k) - std::log(total)));
      }
    }
}

TEST_CASE("what stands in masked places has no influence, NaN and infinity included") {
  Tensor mask = Tensor::from({3, 4}, {1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1}, DType::u8);
  for (DType dtype : {DType::f32, DType::f64})
    for (bool logarithm : {false, true})
      for (int axis : {1, 0}) {
        CAPTURE(logarithm);
        CAPTURE(axis);
        auto op = [&](const Var& x) {
          return logarithm ? log_softmax(x, {.axis = axis, .mask = mask})
                           : softmax(x, {.axis = axis, .mask = mask});
        };
        Tensor x = random({3, 4}, dtype), spoilt = x.clone(), up = random({3, 4}, dtype, 2),
               spoilt_up = up.clone();
        double junk[] = {not_a_number, inf, -inf, 1e30};
        for (int64_t i = 0; i < 12; ++i)
          if (mask.at(i) == 0) spoilt.set(i, junk[i % 4]), spoilt_up.set(i, junk[i % 3]);
        Var a = variable(x), b = variable(spoilt);
        Var ya = op(a), yb = op(b);
        CHECK(max_abs_difference(ya.value(), yb.value()) == 0);
        Tensor da = backward(ya, {.seed = up})[a], db = backward(yb, {.seed = spoilt_up})[b];
        CHECK(max_abs_difference(da, db) == 0);
        for (int64_t i = 0; i < 12; ++i)
          if (mask.at(i) == 0) {
            CHECK(yb.value().at(i) == 0);
            CHECK(db.at(i) == 0);
          }
      }
}

TEST_CASE("a NaN in a real place shows") {
  Tensor x = Tensor::from({1, 3}, {0, not_a_number, 1});
  CHECK(std::isnan(softmax(x).value().at(0)));
  CHECK(std::isnan(log_softmax(x).value().at(0)));
}

TEST_CASE("a mask broadcasts") {
  Tensor x = random({2, 2, 3}), mask = Tensor::from({2, 1, 3}, {1, 1, 0, 0, 0, 0}, DType::u8);
  Tensor y = softmax(x, {.mask = mask}).value();
  for (int64_t r = 0; r < 2; ++r) {
    CHECK(y.at(r * 3) + y.at(r * 3 + 1) == about(1));
    CHECK(y.at(r * 3 + 2) == 0);
  }
  for (int64_t i = 6; i < 12; ++i) CHECK(y.at(i) == 0);
}

TEST_CASE("softmax of nothing") {
  CHECK(softmax(Tensor::zeros({2, 0})).shape() == Shape{2, 0});
  CHECK(log_softmax(Tensor::zeros({0, 3}), {.axis = 0}).shape() == Shape{0, 3});
}

TEST_CASE("softmax: what is refused") {
  CHECK(op_error_of([] { softmax(random({2, 3}), {.axis = 2}); }) ==
        "[softmax] axis 2 does not exist: shape [2, 3]");
  CHECK(op_error_of([] { softmax(random({})); }) == "[softmax] axis -1 does not exist: shape []");
  CHECK(op_error_of([] { softmax(random({2, 4}), {.mask = Tensor::ones({2, 3}, DType::u8)}); }) ==
        "[softmax] mask must broadcast to the input: mask [2, 3], input [2, 4]");
  CHECK(op_error_of([] { log_softmax(random({2, 4}), {.mask = Tensor::ones({2, 4})}); }) ==
        "[log_softmax] mask must be u8: f32");
  CHECK(op_error_of([] { softmax(Tensor::from_ids({2}, {1, 2})); }) ==
        "[softmax] needs f32 or f64 numbers: i32 [2]");
  CHECK(op_error_of([] { log_softmax(Var()); }) ==
        "[log_softmax] the input is undefined; hint: moved from, or never computed?");
}
