#include <cmath>

#include <gradus/ops/layer_norm.h>
#include <gradus/ops/reduce.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "helpers.h"

using namespace gradus;
using helpers::op_error_of;
using helpers::random;

TEST_CASE("layer_norm: all registered cases") { CHECK_OP_CASES("layer_norm", 3); }

TEST_CASE("rows come out with mean 0 and variance 1, then scaled and moved") {
  Tensor x = random({4, 50}),
         y = layer_norm(x, Tensor::full({50}, 3, DType::f64), Tensor::full({50}, -1, DType::f64), 0).value();
  for (int64_t r = 0; r < 4; ++r) {
    double mean = 0, square = 0;
    for (double v : y.row(r).to_vector()) mean += v / 50, square += (v + 1) * (v + 1) / 50;
    CHECK(mean == about(-1));
    CHECK(square == about(9));
  }
}

TEST_CASE("a large mean and a small spread, in float") {
  // 4096 + k / 1024 are floats exactly; a one-pass variance in float would be 0 or negative here.
  std::vector<double> values;
  for (int k = 0; k < 8; ++k) values.push_back(4096 + k / 1024.0);
  Tensor x = Tensor::from({1, 8}, values);
  Tensor y = layer_norm(x, Tensor::ones({8}), Tensor::zeros({8}), 1e-12).value();
  double deviation = std::sqrt(63.0 / 12);
  for (int k = 0; k < 8; ++k) CHECK(y.at(k) == about((k - 3.5) / deviation, 1e-4));
}

TEST_CASE("a constant row is beta, and its gradient is finite") {
  Var x = variable(Tensor::full({1, 4}, 7, DType::f64)), gamma = variable(random({4})),
      beta = variable(random({4}, DType::f64, 2));
  Var y = layer_norm(x, gamma, beta);
  CHECK(max_abs_difference(y.value().row(0), beta.value()) == 0);
  CHECK(all_finite(backward(sum(y))[x]));
}

TEST_CASE("layer_norm: what is refused") {
  CHECK(op_error_of([] { layer_norm(random({2, 5}), random({4}), random({5})); }) ==
        "[layer_norm] gamma and beta must be [n] for input [..., n]: input [2, 5], gamma [4], beta [5]");
  CHECK(op_error_of([] { layer_norm(random({2, 5}), random({5}), random({5}, DType::f32)); }) ==
        "[layer_norm] element types must agree: input f64, gamma f64, beta f32");
}
