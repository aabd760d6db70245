#include <cmath>

#include <gradus/kernels/products/gemm.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/reduce.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "../skip.h"
#include "helpers.h"

using namespace gradus;
using helpers::op_error_of;
using helpers::random;

TEST_CASE("matmul and linear: all registered cases") {
  CHECK_OP_CASES("matmul", 6);
  CHECK_OP_CASES("linear", 3);
}

TEST_CASE("matmul of numbers worked out by hand") {
  Tensor a = Tensor::from({2, 3}, {1, 2, 3, 4, 5, 6}), b = Tensor::from({3, 2}, {1, 0, -1, 2, 0.5, 1});
  CHECK(matmul(a, b).value().to_vector() == std::vector<double>{0.5, 7, 2, 16});
  Var batched = matmul(a.reshape(Shape{2, 1, 3}), b);
  CHECK(batched.shape() == Shape{2, 1, 2});
  CHECK(batched.value().to_vector() == std::vector<double>{0.5, 7, 2, 16});
}

TEST_CASE("matmul broadcasts leading axes both ways") {
  Tensor a = random({2, 1, 3, 4}), b = random({5, 4, 2}, DType::f64, 2);
  Tensor y = matmul(a, b).value();
  REQUIRE(y.shape() == Shape{2, 5, 3, 2});
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 5; ++j)
      CHECK(max_abs_difference(y.row(i).row(j), matmul(a.row(i).row(0), b.row(j)).value()) < 1e-14);
  CHECK(matmul(random({3, 4}), random({1, 1, 4, 2})).shape() == Shape{1, 1, 3, 2});
  CHECK(matmul(random({3, 3, 4}), random({1, 1, 4, 2})).shape() == Shape{1, 3, 3, 2});
}

TEST_CASE("empty matrices") {
  Var a = variable(Tensor::zeros({3, 0}, DType::f64)), b = variable(Tensor::zeros({0, 2}, DType::f64));
  Var y = matmul(a, b);
  CHECK(y.value().to_vector() == std::vector<double>(6, 0));
  Gradients grads = backward(sum(y));
  CHECK(grads[a].shape() == Shape{3, 0});
  CHECK(matmul(random({0, 3}), random({3, 2})).shape() == Shape{0, 2});
  CHECK(matmul(random({0, 2, 3}), random({0, 3, 2})).shape() == Shape{0, 2, 2});
  CHECK(linear(random({0, 3}), random({2, 3}), random({2})).shape() == Shape{0, 2});
}

TEST_CASE("a weight used many times accumulates") {
  Var w = variable(random({3, 3})), x = variable(random({2, 3}, DType::f64, 3));
  Var y = x;
  for (int i = 0; i < 3; ++i) y = linear(y, w);
  Gradients all = backward(sum(y));
  // The same with a weight of its own at each place: the gradients add up.
  Var w1 = variable(w.value()), w2 = variable(w.value()), w3 = variable(w.value());
  Gradients parts = backward(sum(linear(linear(linear(x, w1), w2), w3)));
  for (int64_t i = 0; i < 9; ++i)
    CHECK(all[w].at(i) ==
          about(parts[w1].at(i) + parts[w2].at(i) + parts[w3].at(i), 1e-13));
}

TEST_CASE("the gradient of a matrix times itself") {
  Var a = variable(Tensor::from({2, 2}, {1, 2, 3, 4}, DType::f64));
  Gradients grads = backward(sum(matmul(a, a)));
  CHECK(grads[a].to_vector() == std::vector<double>{7, 11, 9, 13});
}

TEST_CASE("linear without bias, and constants that no gradient is worked out for") {
  Var x = random({2, 4}), w = variable(random({3, 4}, DType::f64, 2)), b = random({3}, DType::f64, 3);
  Gradients grads = backward(sum(linear(x, w, b)));
  CHECK(grads.entries().size() == 1);
  CHECK_FALSE(linear(x, w.value()).requires_grad());
  NoGrad guard;
  CHECK_FALSE(linear(x, w, b).requires_grad());
}

TEST_CASE("linear: the bias gradient of very many rows keeps its digits") {
  Var b = variable(Tensor::zeros({2}));
  Var y = linear(Tensor::ones({300000, 1}), Tensor::ones({2, 1}), b);
  Tensor db = backward(y, {.seed = Tensor::full({300000, 2}, 0.1)})[b];
  CHECK(db.at(1) / double{0.1f} == about(300000, 2e-5));
}

TEST_CASE("matmul and linear: what is refused") {
  const std::string undefined = "an operand is undefined; hint: moved from, or never computed?";
  CHECK(op_error_of([] { matmul(random({2, 3}), Var()); }) == "[matmul] " + undefined);
  CHECK(op_error_of([] { linear(Var(), random({4, 3})); }) == "[linear] " + undefined);
  CHECK(op_error_of([] { matmul(random({2, 3}), random({4, 5})); }) ==
        "[matmul] inner dimensions must agree: [2, 3] and [4, 5]");
  CHECK(op_error_of([] { matmul(random({2, 3, 4}), random({5, 4, 3})); }) ==
        "[matmul] leading dimensions do not broadcast: [2, 3, 4] and [5, 4, 3]");
  CHECK(op_error_of([] { matmul(random({3}), random({3, 4})); }) ==
        "[matmul] needs at least two dimensions: [3] and [3, 4]");
  CHECK(op_error_of([] { matmul(random({2, 3}), random({3, 2}, DType::f32)); }) ==
        "[matmul] element types must agree: f64 and f32");
  CHECK(op_error_of([] { linear(random({64, 256}), random({512, 512})); }) ==
        "[linear] input's last dimension must be in_features: input [64, 256], weight [512, 512]"
        "; hint: 512 = 2 x 256: bidirectional?");
  CHECK(op_error_of([] { linear(random({2, 3}), random({3})); }) == "[linear] weight must be [out, in]: [3]");
  CHECK(op_error_of([] { linear(random({2, 3}), random({4, 3}), random({3})); }) ==
        "[linear] bias must be [out]: bias [3], weight [4, 3]");
  CHECK(op_error_of([] { linear(random({2, 3}), random({4, 3}, DType::f32)); }) ==
        "[linear] element types must agree: f64 and f32");
}

TEST_CASE("matmul in medium precision rounds the factors of large products, and of no others") {
  if (!kernels::bf16_ready()) {
    CHECK(helpers::error_of([] {
            set_float32_matmul_precision(MatmulPrecision::medium);
          }).starts_with("[set_float32_matmul_precision] medium needs a CPU with AVX512_BF16"));
    return gradus::testing::skipped("this CPU has no AVX512_BF16");
  }
  kernels::amx_allow(false);
  Rng rng(5);
  const Tensor a = Tensor::uniform({128, 128}, -1, 1, rng), b = Tensor::uniform({128, 128}, -1, 1, rng);
  const Tensor narrow = a.rows(0, 16);
  const auto product = [&](const Tensor& x) { return matmul(x, b).value(); };
  const Tensor exact = product(a), small = product(narrow);
  set_float32_matmul_precision(MatmulPrecision::medium);
  const Tensor rounded = product(a), as_before = product(narrow);
  set_float32_matmul_precision(MatmulPrecision::highest);
  // 128 products of errors up to 2^-8 of 1 have a deviation of about 128^(1/2) 2^-9 / 3.
  double worst = 0;
  for (int64_t i = 0; i < exact.numel(); ++i) worst = worse(worst, std::abs(exact.at(i) - rounded.at(i)));
  CHECK(worst > 1e-3);
  CHECK(worst < 0.1);
  CHECK(as_before.to_vector() == small.to_vector());
  CHECK(product(a).to_vector() == exact.to_vector());
  kernels::amx_allow(true);
}
