#include <cmath>

#include <gradus/ops/dropout.h>
#include <gradus/ops/reduce.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "helpers.h"

using namespace gradus;
using helpers::op_error_of;
using helpers::random;

TEST_CASE("dropout: all registered cases") { CHECK_OP_CASES("dropout", 2); }

TEST_CASE("outside of training, and with p = 0, nothing happens") {
  Var x = variable(random({3, 4}));
  CHECK(dropout(x, 0.5).node() == x.node());
  Training mode(1);
  CHECK(dropout(x, 0).node() == x.node());
}

TEST_CASE("the fraction dropped, the scale of what stays, the gradient") {
  Training mode(42);
  int64_t n = 20001;
  Var x = variable(Tensor::ones({n}));
  Var y = dropout(x, 0.3);
  int64_t zeros = 0;
  for (double v : y.value().to_vector()) {
    if (v == 0) ++zeros;
    else CHECK(v == about(1 / 0.7));
  }
  // Five deviations of the binomial distribution.
  CHECK(std::abs(static_cast<double>(zeros) / static_cast<double>(n) - 0.3) <
        5 * std::sqrt(0.3 * 0.7 / 20001));
  CHECK(max_abs_difference(backward(sum(y))[x], y.value()) == 0);
}

TEST_CASE("the mask is Philox's, word by word") {
  Training mode(7);
  Training::next_stream();  // some other random op came first
  Tensor y = dropout(Tensor::ones({103}), 0.5).value();
  for (int64_t i = 0; i < 103; ++i) {
    bool kept = philox(7, 1, static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)] >= 0x80000000u;
    CHECK(y.at(i) == (kept ? 2 : 0));
  }
}

TEST_CASE("the same seed drops the same, another one or a later op something else") {
  Tensor x = Tensor::ones({200});
  auto draw = [&](uint64_t seed) {
    Training mode(seed);
    Tensor first = dropout(x, 0.5).value(), second = dropout(x, 0.5).value();
    return std::pair(first.to_vector(), second.to_vector());
  };
  CHECK(draw(1) == draw(1));
  CHECK(draw(1).first != draw(2).first);
  CHECK(draw(1).first != draw(1).second);
}

TEST_CASE("what is dropped is 0 even where it was not finite") {
  Training mode(1);
  Tensor y = dropout(Tensor::full({64}, INFINITY), 0.5).value();
  int64_t zeros = 0;
  for (double v : y.to_vector()) zeros += v == 0;
  CHECK(zeros > 10);
}

TEST_CASE("dropout: what is refused") {
  CHECK(op_error_of([] { dropout(random({2}), 1.5); }) == "[dropout] p must be in [0, 1): 1.5");
  CHECK(op_error_of([] { dropout(random({2}), 1); }) == "[dropout] p must be in [0, 1): 1");
  CHECK(op_error_of([] { dropout(random({2}), -0.1); }) == "[dropout] p must be in [0, 1): -0.1");
}
