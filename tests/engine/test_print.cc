// How tensors are shown to people.

#include <limits>

#include <gradus/print.h>

#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

TEST_CASE("tensors print in aligned columns") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  CHECK(to_string(f32({2, 2}, {1, -2.5, 0, nan})) ==
        "[[ 1.0000, -2.5000],\n"
        " [ 0.0000,     nan]]  f32 [2, 2]");
  CHECK(to_string(f64({}, {3})) == "3.0000  f64 []");
  CHECK(to_string(f64({3}, {inf, -inf, 1e9})) == "[       inf,       -inf, 1.0000e+09]  f64 [3]");
  CHECK(to_string(f64({2}, {1e-7, 1})) == "[1.0000e-07,     1.0000]  f64 [2]");
  CHECK(to_string(Tensor::from_ids({3}, {1, -20, 3})) == "[  1, -20,   3]  i32 [3]");
  CHECK(to_string(f32({2}, {1, 2}), {.precision = 1}) == "[1.0, 2.0]  f32 [2]");
  CHECK(to_string(Tensor::zeros({2, 0})) == "[[],\n []]  f32 [2, 0]");
  CHECK(to_string(Tensor()) == "(undefined)");
  CHECK(to_string(f32({2, 1, 2}, {1, 2, 3, 4}), {.precision = 0}) ==
        "[[[1, 2]],\n"
        " [[3, 4]]]  f32 [2, 1, 2]");
}

TEST_CASE("long axes are shortened") {
  Tensor t = Tensor::zeros({201}, DType::i32);
  for (int i = 0; i < 201; ++i) t.set(i, i);
  CHECK(to_string(t) == "[  0,   1,   2,   3, ..., 197, 198, 199, 200]  i32 [201]");
  CHECK_FALSE(contains(to_string(t.rows(0, 200)), "..."));
  CHECK(to_string(t.reshape({67, 3})) ==
        "[[  0,   1,   2],\n"
        " [  3,   4,   5],\n"
        " [  6,   7,   8],\n"
        " [  9,  10,  11],\n"
        " ...,\n"
        " [189, 190, 191],\n"
        " [192, 193, 194],\n"
        " [195, 196, 197],\n"
        " [198, 199, 200]]  i32 [67, 3]");
}

TEST_CASE("describe gives range and what is not finite") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  CHECK(describe(f32({2, 2}, {-0.5, 2, 1, 0})) == "f32 [2, 2], -0.5 .. 2");
  CHECK(describe(f64({4}, {nan, 1, inf, nan})) == "f64 [4], 1 .. 1, 2 NaN, 1 infinite");
  CHECK(describe(f64({1}, {nan})) == "f64 [1], 1 NaN");
  CHECK(describe(Tensor::zeros({0})) == "f32 [0]");
  CHECK(describe(Tensor()) == "undefined");
}
