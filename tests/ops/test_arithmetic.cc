// Arithmetic and activations against numbers worked out by hand, NumPy's rules for NaN and infinity, and
// error texts.

#include <cmath>

#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/where.h>

#include "../about.h"
#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

TEST_CASE("broadcasting aligns axes at the end") {
  Var column = f32({2, 1}, {10, 20}), row = f32({3}, {1, 2, 3});
  Var sum = column + row;
  CHECK(sum.shape() == Shape{2, 3});
  CHECK(sum.value().to_vector() == Numbers{11, 12, 13, 21, 22, 23});
  CHECK((row - column).value().to_vector() == Numbers{-9, -8, -7, -19, -18, -17});
  CHECK((column * row).value().to_vector() == Numbers{10, 20, 30, 20, 40, 60});
  CHECK((column / row).value().to_vector() == f32({6}, {10, 5, 10.0 / 3, 20, 10, 20.0 / 3}).to_vector());

  Var scalar = f32({}, {5});
  CHECK((scalar + row).value().to_vector() == Numbers{6, 7, 8});
  CHECK((scalar * scalar).shape() == Shape{});
  Var middle = f64({2, 1, 2}, {1, 2, 3, 4}), block = f64({3, 1}, {1, 10, 100});
  CHECK((middle * block).shape() == Shape{2, 3, 2});
  CHECK((middle * block).value().to_vector() == Numbers{1, 2, 10, 20, 100, 200, 3, 4, 30, 40, 300, 400});
}

TEST_CASE("broadcasting six axes reads every number at its place") {
  // a_i + b_j with i the even and j the odd axes: the result spells its own index in base 2 and 3.
  Var a = f64({2, 1, 2, 1, 2, 1}, {0, 10, 1000, 1010, 100000, 100010, 101000, 101010});
  Var b = f64({1, 3, 1, 1, 1, 3}, {0, 1, 2, 10000, 10001, 10002, 20000, 20001, 20002});
  Var y = a + b;
  CHECK(y.shape() == Shape{2, 3, 2, 1, 2, 3});
  int64_t at = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k)
        for (int l = 0; l < 2; ++l)
          for (int m = 0; m < 3; ++m)
            CHECK(y.value().at(at++) == i * 100000 + j * 10000 + k * 1000 + l * 10 + m);
}

TEST_CASE("empty operands give empty results") {
  Var none = Tensor::zeros({0, 3}), row = f32({3}, {1, 2, 3});
  CHECK((none + row).shape() == Shape{0, 3});
  CHECK((row * none).numel() == 0);
  CHECK((Var(Tensor::zeros({2, 0})) - Var(f32({2, 1}, {1, 2}))).shape() == Shape{2, 0});
  CHECK(exp(none).shape() == Shape{0, 3});
  Var b = variable(f32({3}, {1, 2, 3}));
  CHECK(gradient(none * b, b) == Numbers{0, 0, 0});
}

TEST_CASE("numbers take the Var's element type and either side") {
  Var x = f32({2}, {1, 4});
  CHECK((1 - x).value().to_vector() == Numbers{0, -3});
  CHECK((x - 1).value().to_vector() == Numbers{0, 3});
  CHECK((2 / x).value().to_vector() == Numbers{2, 0.5});
  CHECK((x / 2).value().to_vector() == Numbers{0.5, 2});
  CHECK((3 * x + 1).value().to_vector() == Numbers{4, 13});
  CHECK((x * 0.1).dtype() == DType::f32);
  CHECK((-x).value().to_vector() == Numbers{-1, -4});
}

TEST_CASE("gradients of stretched operands are summed") {
  Var a = variable(f64({2, 1}, {10, 20})), b = variable(f64({3}, {1, 2, 3}));
  CHECK(gradient(a + b, a) == Numbers{3, 3});
  CHECK(gradient(a - b, b) == Numbers{-2, -2, -2});
  CHECK(gradient(a * b, a, {1, 1, 1, 2, 2, 2}) == Numbers{6, 12});
  CHECK(gradient(a * b, b) == Numbers{30, 30, 30});
  Var s = variable(f64({}, {2}));
  CHECK(gradient(s * b, s) == Numbers{6});
  CHECK(gradient(b / s, s) == Numbers{-1.5});
}

TEST_CASE("powers") {
  Var x = variable(f64({3}, {-2, 0, 3}));
  CHECK(pow(x, 2).value().to_vector() == Numbers{4, 0, 9});
  CHECK(gradient(pow(x, 2), x) == Numbers{-4, 0, 6});
  CHECK(pow(x, 3).value().to_vector() == Numbers{-8, 0, 27});
  CHECK(gradient(pow(x, 3), x) == Numbers{12, 0, 27});
  CHECK(gradient(pow(x, 0), x) == Numbers{0, 0, 0});  // 0 * 0^-1 is not NaN
  CHECK(gradient(pow(x, 1), x) == Numbers{1, 1, 1});
  CHECK(std::isnan(pow(x, 0.5).value().at(0)));

  Var base = variable(f64({2}, {0, 2})), e = variable(f64({2}, {2, 3}));
  CHECK(pow(base, e).value().to_vector() == Numbers{0, 8});
  CHECK(gradient(pow(base, e), base) == Numbers{0, 12});
  Numbers de = gradient(pow(base, e), e);
  CHECK(de[0] == 0);  // x^e log x goes to 0 with x
  CHECK(de[1] == about(8 * std::log(2.0)));
}

TEST_CASE("square roots, exponentials, logarithms") {
  Var x = variable(f64({2}, {4, 0.25}));
  CHECK(sqrt(x).value().to_vector() == Numbers{2, 0.5});
  CHECK(gradient(sqrt(x), x) == Numbers{0.25, 1});
  CHECK(gradient(log(x), x) == Numbers{0.25, 4});
  CHECK(exp(Var(f64({3}, {0, -kInf, kInf}))).value().to_vector() == Numbers{1, 0, kInf});
  Tensor logs = log(Var(f64({3}, {1, 0, -1}))).value();
  CHECK(logs.at(0) == 0);
  CHECK(logs.at(1) == -kInf);
  CHECK(std::isnan(logs.at(2)));
  CHECK(exp(Var(f64({1}, {1}))).value().item() == about(2.718281828459045, 1e-14));
}

TEST_CASE("absolute values have slope 0 at 0") {
  Var x = variable(f64({3}, {-2, 0, 3}));
  CHECK(abs(x).value().to_vector() == Numbers{2, 0, 3});
  CHECK(gradient(abs(x), x) == Numbers{-1, 0, 1});
}

TEST_CASE("maximum and minimum share ties and keep NaN") {
  Var a = variable(f64({4}, {1, 2, 3, -kInf})), b = variable(f64({4}, {3, 2, 1, kInf}));
  CHECK(maximum(a, b).value().to_vector() == Numbers{3, 2, 3, kInf});
  CHECK(minimum(a, b).value().to_vector() == Numbers{1, 2, 1, -kInf});
  CHECK(gradient(maximum(a, b), a) == Numbers{0, 0.5, 1, 0});
  CHECK(gradient(maximum(a, b), b) == Numbers{1, 0.5, 0, 1});
  CHECK(gradient(minimum(a, b), a) == Numbers{1, 0.5, 0, 1});
  CHECK(gradient(maximum(a, a), a) == Numbers{1, 1, 1, 1});

  Var n = f64({3}, {kNaN, 1, kNaN}), m = f64({3}, {1, kNaN, kNaN});
  for (double v : maximum(n, m).value().to_vector()) CHECK(std::isnan(v));
  for (double v : minimum(n, m).value().to_vector()) CHECK(std::isnan(v));
}

TEST_CASE("clamp passes the gradient inside and on its borders") {
  Var x = variable(f64({5}, {-2, -1, 0, 1, 2}));
  CHECK(clamp(x, -1, 1).value().to_vector() == Numbers{-1, -1, 0, 1, 1});
  CHECK(gradient(clamp(x, -1, 1), x) == Numbers{0, 1, 1, 1, 0});
  CHECK(std::isnan(clamp(Var(f64({1}, {kNaN})), -1, 1).item()));
  CHECK(op_error_of([&] { clamp(x, 2, 1); }) == "[clamp] low must not exceed high: 2 and 1");
}

TEST_CASE("where takes from a or b, and what is not taken gets no gradient") {
  Tensor condition = Tensor::from({2, 1}, {1, 0}, DType::u8);
  Var a = variable(f64({2}, {1, 2})), b = variable(f64({}, {9}));
  Var y = where(condition, a, b);
  CHECK(y.value().to_vector() == Numbers{1, 2, 9, 9});
  CHECK(gradient(y, a, {1, 2, 3, 4}) == Numbers{1, 2});
  CHECK(gradient(y, b, {1, 2, 3, 4}) == Numbers{7});
  // An infinity that was not chosen stays out of the gradient of what was.
  Var x = variable(f64({2}, {0, 4}));
  Var safe = where(Tensor::from({2}, {0, 1}, DType::u8), x, Tensor::ones({}, DType::f64));
  CHECK(gradient(1 / safe, x) == Numbers{0, -0.0625});

  CHECK(op_error_of([&] { where(Tensor::ones({2}), a, b); }) == "[where] the condition must be u8: f32");
  CHECK(op_error_of([&] {
          masked_fill(a, Tensor::from({4}, {1, 0, 1, 0}, DType::u8), 0);
        }).starts_with("[masked_fill] shapes do not broadcast: [2]"));
  CHECK(op_error_of([&] { masked_fill(a, Tensor::ones({2}), 0); }) == "[masked_fill] the mask must be u8: f32");
  CHECK(op_error_of([&] { where(Tensor(), a, b); }) == "[where] the condition must be u8: undefined");
  CHECK(op_error_of([&] { where(Tensor::ones({3}, DType::u8), a, b); }) ==
        "[where] shapes do not broadcast: [2] and [3]");
}

TEST_CASE("a product with a constant does not hold on to its variable") {
  Tensor value = f32({2}, {1, 1});
  Var x = variable(value), y = x * Var(f32({2}, {2, 3}));
  value = Tensor();
  CHECK(x.value().sole_owner());
  CHECK(gradient(y, x) == Numbers{2, 3});
}

TEST_CASE("activations") {
  Var x = variable(f64({3}, {-1, 0, 2}));
  CHECK(relu(x).value().to_vector() == Numbers{0, 0, 2});
  CHECK(gradient(relu(x), x) == Numbers{0, 0, 1});
  CHECK(leaky_relu(x, 0.25).value().to_vector() == Numbers{-0.25, 0, 2});
  CHECK(gradient(leaky_relu(x, 0.25), x) == Numbers{0.25, 0.25, 1});
  auto near = [](const Tensor& t, const Numbers& expected, double tolerance = 1e-12) {
    return all_close(t, f64(t.shape(), expected), tolerance, 1e-15);
  };
  CHECK(near(tanh(x).value(), {-0.76159415595576488812, 0, 0.96402758007581688395}));
  CHECK(near(sigmoid(x).value(), {0.26894142136999512075, 0.5, 0.88079707797788244406}));
  CHECK(near(gelu(x).value(), {-0.15865525393145705142, 0, 1.95449973610364158560}));
  CHECK(near(softplus(x).value(), {0.31326168751822283405, 0.69314718055994530942, 2.12692801104297249644}));
  CHECK(gradient(tanh(x), x)[1] == 1);
  CHECK(gradient(sigmoid(x), x)[1] == 0.25);
  CHECK(gradient(gelu(x), x)[1] == 0.5);
  // x Phi(x) far to the left, where 1 + erf has no digits left: -10 Phi(-10), Phi(-10) = 7.619853024160526e-24.
  CHECK(std::abs(gelu(f64({1}, {-10})).value().at(0) / -7.619853024160526e-23 - 1) < 1e-12);
}

TEST_CASE("the gradient of a quotient overflows only where it is too large itself") {
  for (auto [a, b, dy, db] : {std::tuple(0.0, 1e-40, 1.0, 0.0), {0.0, 1e-30, 1e10, 0.0},
                              {1e-30, 1e-20, 1e20, -1e30}}) {
    CAPTURE(b);
    Var x = variable(Tensor::full({1}, a, DType::f32)), y = variable(Tensor::full({1}, b, DType::f32));
    const Tensor seed = Tensor::full({1}, dy, DType::f32);
    CHECK(backward(x / y, {.seed = seed})[y].item() == about(db, 1e-6));
    CHECK(backward(a / y, {.seed = seed})[y].item() == about(db, 1e-6));
  }
}

TEST_CASE("activations at the ends of the range") {
  for (DType type : {DType::f32, DType::f64}) {
    Var x = variable(Tensor::from({4}, {-1000, 1000, -kInf, kInf}, type));
    CHECK(tanh(x).value().to_vector() == Numbers{-1, 1, -1, 1});
    CHECK(sigmoid(x).value().to_vector() == Numbers{0, 1, 0, 1});
    CHECK(softplus(x).value().to_vector() == Numbers{0, 1000, 0, kInf});
    CHECK(gradient(tanh(x), x) == Numbers{0, 0, 0, 0});
    CHECK(gradient(softplus(x), x) == Numbers{0, 1, 0, 1});
    Var nan = Tensor::from({1}, {kNaN}, type);
    for (const Var& y : {tanh(nan), sigmoid(nan), relu(nan), leaky_relu(nan), gelu(nan), softplus(nan)})
      CHECK(std::isnan(y.item()));
  }
}

TEST_CASE("who has no part in a choice gets nothing of a gradient, were that infinite") {
  for (DType type : {DType::f32, DType::f64}) {
    // The slope of the root is infinite at 0.
    Var x = variable(Tensor::from({2}, {-1, 4}, type)), zero = Tensor::scalar(0, type);
    CHECK(gradient(sum(sqrt(maximum(x, zero))), x) == Numbers{0, 0.25});
    CHECK(gradient(sum(sqrt(max(x * Var(Tensor::from({2}, {1, 0}, type))))), x)[0] == 0);
    Var y = variable(Tensor::from({1}, {0}, type));
    CHECK(gradient(sum(sqrt(abs(y))), y) == Numbers{0});
  }
}

TEST_CASE("misuse of arithmetic is named") {
  Var a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), b = Tensor::zeros({4, 3}), d = Tensor::zeros({2, 3}, DType::f64);
  CHECK(op_error_of([&] { a + b; }) == "[add] shapes do not broadcast: [2, 3] and [4, 3]");
  CHECK(op_error_of([&] { leaky_relu(a, 0); }) == "[leaky_relu] slope must be positive: 0");
  CHECK(op_error_of([&] { a - b; }) == "[sub] shapes do not broadcast: [2, 3] and [4, 3]");
  CHECK(op_error_of([&] { a * b; }) == "[mul] shapes do not broadcast: [2, 3] and [4, 3]");
  CHECK(op_error_of([&] { a / b; }) == "[div] shapes do not broadcast: [2, 3] and [4, 3]");
  CHECK(op_error_of([&] { pow(a, b); }) == "[pow] shapes do not broadcast: [2, 3] and [4, 3]");
  CHECK(op_error_of([&] { maximum(a, b); }) == "[maximum] shapes do not broadcast: [2, 3] and [4, 3]");
  CHECK(op_error_of([&] { minimum(a, b); }) == "[minimum] shapes do not broadcast: [2, 3] and [4, 3]");
  CHECK(op_error_of([&] { a + d; }) == "[add] element types must agree: f32 and f64");
  Var ids = Tensor::zeros({2}, DType::i32);
  CHECK(op_error_of([&] { ids + ids; }) == "[add] needs f32 or f64 numbers: i32 [2]");
  CHECK(op_error_of([&] { ids * 2; }) == "[mul] needs f32 or f64 numbers: i32 [2]");
  CHECK(op_error_of([&] { exp(ids); }) == "[exp] needs f32 or f64 numbers: i32 [2]");
  CHECK(op_error_of([&] { tanh(ids); }) == "[tanh] needs f32 or f64 numbers: i32 [2]");
  CHECK(op_error_of([&] { a + Var(); }) ==
        "[add] an operand is undefined; hint: moved from, or never computed?");
  CHECK(op_error_of([&] { sigmoid(Var()); }) ==
        "[sigmoid] the input is undefined; hint: moved from, or never computed?");
}
