// A zoo of wrong backwards: each one has to be caught, and called by its name. Right ones are not accused.

#include <gradus/diagnosis.h>
#include <gradus/gradcheck.h>
#include <gradus/op_case.h>
#include <gradus/ops.h>
#include <gradus/random.h>

#include <cmath>

#include "../about.h"
#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

using Function = std::function<Var(const std::vector<Var>&)>;

Tensor random(const Shape& shape, uint64_t seed = 1) {
  Rng rng(seed);
  return Tensor::uniform(shape, -1, 1, rng, DType::f64);
}

// The value of a right op under a backward of one's own.
Var with_backward(const std::vector<Var>& inputs, const Var& y, Backward backward) {
  return record("wrong", inputs, y.value(), std::move(backward));
}

Tensor product(const Tensor& a, const Tensor& b) { return matmul(a, b).value(); }
Tensor turned(const Tensor& a) { return transpose(a, 0, 1).value(); }

// dy (1 - tanh(x)^2)
Tensor map_tanh_slope(const Tensor& dy, const Tensor& x) {
  Var y = tanh(x);
  return (Var(dy) * (1 - y * y)).value();
}

Diagnosis check(const Function& f, const std::vector<Tensor>& inputs, Mistake expected,
                const std::string& sentence = "") {
  Diagnosis d = diagnose(f, inputs);
  INFO(std::string(name_of(d.mistake)), ": ", d.sentence);
  CHECK(d.mistake == expected);
  CHECK(contains(d.sentence, sentence));
  CHECK_FALSE(static_cast<bool>(d));
  // gradcheck catches it as well, and says the same.
  GradcheckReport report = gradcheck(f, inputs);
  INFO(report.message);
  CHECK_FALSE(report);
  CHECK(contains(report.message, sentence));
  CHECK(report.diagnosis.mistake == expected);
  return d;
}

}  // namespace

TEST_CASE("a factor is found, and where it may come from") {
  check(
      [](auto& in) {
        return with_backward({in[0]}, in[0] * in[0], [x = in[0].value()](const Tensor& dy, Grads& dx) {
          dx.add(0, (Var(dy) * x).value());
        });
      },
      {random({2, 3})}, Mistake::factor,
      "it is 0.5 times what it should be (1/2: a square, or a value used twice?)");
  // A mean over the rows where their sum belongs.
  check(
      [](auto& in) {
        return with_backward({in[0], in[1]}, in[0] + in[1], [](const Tensor& dy, Grads& dx) {
          dx.add(0, dy);
          dx.add(1, mean(dy, {.axes = {0}}).value());
        });
      },
      {random({5, 3}), random({3})}, Mistake::factor,
      "it is 0.2 times what it should be (1/5: the size of axis 0 of the result [5, 3]; a mean instead of a "
      "sum?)");
  // Scores without their 1 / sqrt(d).
  check(
      [](auto& in) {
        return with_backward({in[0], in[1]}, matmul(in[0], transpose(in[1], 0, 1)) / std::sqrt(7.0),
                             [q = in[0].value(), k = in[1].value()](const Tensor& dy, Grads& dx) {
                               dx.add(0, product(dy, k));
                               dx.add(1, (matmul(turned(dy), q) / std::sqrt(7.0)).value());
                             });
      },
      {random({2, 7}), random({3, 7}, 2)}, Mistake::factor,
      "the root of 7: the size of axis 1 of the input [2, 7]");
}

TEST_CASE("a wrong sign") {
  Diagnosis d = check(
      [](auto& in) {
        return with_backward({in[0], in[1]}, in[0] - in[1], [](const Tensor& dy, Grads& dx) {
          dx.add(0, dy);
          dx.add(1, dy);
        });
      },
      {random({2, 3}), random({2, 3}, 2)}, Mistake::sign, "it has the wrong sign everywhere");
  CHECK(d.name == "input1");
  REQUIRE(d.inputs.size() == 2);
  CHECK(d.inputs[0].mistake == Mistake::none);
  // Both gradients, to draw them beside each other.
  CHECK(d.inputs[1].analytic.shape() == Shape{2, 3});
  for (int64_t i = 0; i < 6; ++i)
    CHECK(d.inputs[1].analytic.at(i) == about(-d.inputs[1].numeric.at(i), 1e-6));
  CHECK(d.inputs[1].worst >= 0);
}

TEST_CASE("a transposed weight gradient, square or not") {
  auto wrong_linear = [](auto& in) {
    return with_backward({in[0], in[1]}, linear(in[0], in[1]),
                         [x = in[0].value(), w = in[1].value()](const Tensor& dy, Grads& dx) {
                           dx.add(0, product(dy, w));
                           dx.add(1, product(turned(x), dy).reshape(w.shape()));  // dW^T
                         });
  };
  check(wrong_linear, {random({4, 3}), random({3, 3}, 2)}, Mistake::transposed,
        "it is transposed: axes 0 and 1");
  check(wrong_linear, {random({4, 3}), random({2, 3}, 2)}, Mistake::transposed,
        "it is transposed: axes 0 and 1");
  // dy instead of its transpose.
  check(
      [](auto& in) {
        return with_backward({in[0]}, transpose(in[0], 0, 1) * 2,
                             [](const Tensor& dy, Grads& dx) { dx.add(0, (Var(dy) * 2).value()); });
      },
      {random({3, 3})}, Mistake::transposed, "transposed");
}

TEST_CASE("a sum over a broadcast axis that is missing") {
  check(
      [](auto& in) {
        return with_backward({in[0], in[1]}, in[0] + in[1], [](const Tensor& dy, Grads& dx) {
          dx.add(0, dy);
          dx.add(1, dy.row(0));
        });
      },
      {random({4, 3}), random({3})}, Mistake::broadcast_sum,
      "the sum over axis 0 of dy is missing, along which it was broadcast: only entry 0 of 4 is there");
  check(
      [](auto& in) {
        return with_backward({in[0], in[1]}, in[0] * in[1],
                             [x = in[0].value(), c = in[1].value()](const Tensor& dy, Grads& dx) {
                               dx.add(0, (Var(dy) * c).value());
                               dx.add(1, slice(Var(dy) * x, 1, 1, 2).value());
                             });
      },
      {random({4, 3}), random({4, 1}, 3)}, Mistake::broadcast_sum, "the sum over axis 1 of dy is missing");
}

TEST_CASE("contributions that overwrite each other") {
  // Ids repeat.
  Tensor ids = Tensor::from_ids({5}, {1, 3, 1, 0, 3});
  check(
      [ids](auto& in) {
        return with_backward({in[0]}, embedding(in[0], ids), [ids](const Tensor& dy, Grads& dx) {
          Tensor dw = dx.into(0);
          for (int64_t n = 0; n < 5; ++n) dw.row(ids.i32()[n]).copy_from(dy.row(n));
        });
      },
      {random({4, 2})}, Mistake::overwritten,
      "contributions along axis 0 of dy are overwritten instead of added (= where += is needed): only the last "
      "one");
  // A weight that is used at each of three steps, in a backward that runs over them from the end.
  check(
      [](auto& in) {
        return with_backward({in[0], in[1]}, in[0] * in[1],
                             [x = in[0].value(), w = in[1].value()](const Tensor& dy, Grads& dx) {
                               dx.add(0, (Var(dy) * w).value());
                               Tensor dw = dx.into(1);
                               for (int64_t t = 2; t >= 0; --t)
                                 dw.copy_from((Var(dy.row(t)) * x.row(t)).value());
                             });
      },
      {random({3, 4}), random({4}, 2)}, Mistake::overwritten, "only the first one");
}

TEST_CASE("other uses' contributions that are overwritten") {
  auto set = [](const std::vector<Var>& in) {
    return with_backward({in[0]}, in[0] * in[0], [x = in[0].value()](const Tensor& dy, Grads& dx) {
      dx.into(0).copy_from((Var(dy) * x * 2).value());
    });
  };
  Diagnosis d =
      check(set, {random({3})}, Mistake::overwritten,
            "the backward of wrong sets (=) the gradient of input0, so what other uses of input0 have sent "
            "(here 3 to each number) is lost: add to it (+=)");
  CHECK(d.name == "input0");
  REQUIRE(d.inputs.size() == 1);
  for (int64_t i = 0; i < 3; ++i)  // another use sends 3
    CHECK(d.inputs[0].analytic.at(i) + 3 == about(d.inputs[0].numeric.at(i)));
  CHECK(d.inputs[0].worst_error > 0.5);
  // Set, and no known mistake besides: what is numeric stays what the differences say, and 3.
  Tensor x = random({3});
  auto unknown = [](auto& in) {
    return with_backward({in[0]}, in[0] * in[0], [x = in[0].value()](const Tensor& dy, Grads& dx) {
      dx.into(0).copy_from((Var(dy) * x * 2 + Var(dy) * exp(x)).value());
    });
  };
  Diagnosis both = check(unknown, {x}, Mistake::overwritten, "(here 3 to each number)");
  for (int64_t i = 0; i < 3; ++i)
    CHECK(both.inputs[0].numeric.at(i) == about(2 * x.at(i) * both.dy.at(i) + 3));
  // Of two inputs one: the other is right.
  Diagnosis one = check(
      [](auto& in) {
        return with_backward({in[0], in[1]}, in[0] * in[1],
                             [a = in[0].value(), b = in[1].value()](const Tensor& dy, Grads& dx) {
                               dx.add(0, (Var(dy) * b).value());
                               dx.into(1).copy_from((Var(dy) * a).value());
                             });
      },
      {random({3}), random({3}, 2)}, Mistake::overwritten, "the gradient of input1");
  CHECK(one.inputs[0].mistake == Mistake::none);
  CHECK(one.inputs[1].mistake == Mistake::overwritten);
  // With another use in the function itself its gradient is wrong, by what that use sent.
  check([&](auto& in) { return in[0] * 3 + set(in); }, {random({3})}, Mistake::overwritten, "add to it (+=)");
  check([&](auto& in) { return exp(set({tanh(in[0])})); }, {random({3})}, Mistake::overwritten,
        "the gradient of its input");
}

TEST_CASE("a softmax without its competition") {
  auto wrong_softmax = [](bool square) {
    return [square](auto& in) {
      Var y = softmax(in[0]);
      return with_backward({in[0]}, y, [y = y.value(), square](const Tensor& dy, Grads& dx) {
        dx.add(0, (square ? Var(dy) * y * (1 - Var(y)) : Var(dy) * y).value());
      });
    };
  };
  check(wrong_softmax(false), {random({2, 4})}, Mistake::softmax_diagonal, "it is dy y without - y (dy . y)");
  check(wrong_softmax(true), {random({2, 4})}, Mistake::softmax_diagonal,
        "only the diagonal of the Jacobian is there");
}

TEST_CASE("masked positions that receive a gradient") {
  Tensor mask({2, 4}, DType::u8);
  for (int64_t i = 0; i < 8; ++i) mask.u8()[i] = i != 3 && i != 6 && i != 7;
  Diagnosis d = check(
      [mask](auto& in) {
        return with_backward(
            {in[0]}, tanh(in[0]) * Var(mask.to(DType::f64)),
            [x = in[0].value()](const Tensor& dy, Grads& dx) { dx.add(0, map_tanh_slope(dy, x)); });
      },
      {random({2, 4})}, Mistake::mask_leak,
      "(masked or padded positions?): input0[0,3], input0[1,2], input0[1,3]");
  CHECK(d.name == "input0");
}

TEST_CASE("an input that is not connected") {
  check([](auto& in) { return in[0] * stop_gradient(in[1]); }, {random({3}), random({3}, 2)},
        Mistake::not_connected, "no gradient reached it: the graph is not connected");
  check(
      [](auto& in) {
        return with_backward({in[0], in[1]}, in[0] * in[1], [b = in[1].value()](const Tensor& dy, Grads& dx) {
          dx.add(0, (Var(dy) * b).value());
          dx.into(1);
        });
      },
      {random({3}), random({3}, 2)}, Mistake::not_connected, "does the backward add to every input?");
}

TEST_CASE("dropout is on") {
  Training training(1);
  check([](auto& in) { return dropout(in[0], 0.5); }, {random({20})}, Mistake::not_deterministic,
        "dropout on?");
}

TEST_CASE("a kink is no mistake of the backward") {
  check([](auto& in) { return relu(in[0]); }, {f64({3}, {1, 0, -1})}, Mistake::kink,
        "the function has a kink there");
  check([](auto& in) { return relu(in[0] * 3); }, {f64({2}, {0, 0})}, Mistake::kink, "move the point");
}

TEST_CASE("float inside") {
  check(
      [](auto& in) {
        Tensor rounded = in[0].value().to(DType::f32).to(DType::f64);
        return tanh(record("rounded", {in[0]}, rounded, [](const Tensor& dy, Grads& dx) { dx.add(0, dy); }));
      },
      {f64({4}, {0.3, -0.7, 0.123456789, 1.1})}, Mistake::float_used, "something inside computes in f32");
}

TEST_CASE("a result that is not finite") {
  check([](auto& in) { return log(in[0]); }, {f64({2}, {-1, 1})}, Mistake::not_finite, "");
}

TEST_CASE("dy that is not used as a factor") {
  check(
      [](auto& in) {
        return with_backward({in[0]}, tanh(in[0]), [x = in[0].value()](const Tensor& dy, Grads& dx) {
          dx.add(0, map_tanh_slope(Tensor::ones(dy.shape(), dy.dtype()), x));
        });
      },
      {random({4})}, Mistake::not_linear, "not linear in dy");
}

TEST_CASE("two inputs exchanged") {
  check(
      [](auto& in) {
        return with_backward({in[0], in[1]}, in[0] * in[1],
                             [a = in[0].value(), b = in[1].value()](const Tensor& dy, Grads& dx) {
                               dx.add(0, (Var(dy) * a).value());
                               dx.add(1, (Var(dy) * b).value());
                             });
      },
      {random({2, 3}), random({2, 3}, 2)}, Mistake::swapped, "are the two inputs exchanged?");
}

TEST_CASE("an index off by one, and a loop that ends too early") {
  check(
      [](auto& in) {
        return with_backward({in[0]}, in[0] * in[0], [x = in[0].value()](const Tensor& dy, Grads& dx) {
          Tensor g = dx.into(0);
          for (int64_t i = 0; i + 1 < 5; ++i) g.set(i + 1, 2 * dy.at(i) * x.at(i));
        });
      },
      {random({5})}, Mistake::shifted, "it is shifted by 1 along axis 0");
  check(
      [](auto& in) {
        return with_backward({in[0]}, in[0] * in[0], [x = in[0].value()](const Tensor& dy, Grads& dx) {
          Tensor g = dx.into(0);
          for (int64_t i = 0; i + 1 < 5; ++i) g.set(i, 2 * dy.at(i) * x.at(i));
        });
      },
      {random({5})}, Mistake::incomplete, "does a loop end too early?): input0[4]");
}

TEST_CASE("what no rule explains is not given a wrong name") {
  for (double size : {0.1, 1e-6}) {  // nearly right is no factor of 1.00001, either
    Diagnosis d = diagnose(
        [size](auto& in) {
          return with_backward({in[0]}, in[0] * in[0], [x = in[0].value(), size](const Tensor& dy, Grads& dx) {
            Tensor g = dx.into(0);
            for (int64_t i = 0; i < 5; ++i)
              g.set(i, g.at(i) + 2 * dy.at(i) * x.at(i) * (1 + size * static_cast<double>(i * i)));
          });
        },
        {random({5})});
    CHECK_MESSAGE(d.mistake == Mistake::unknown, d.sentence);
  }
}

TEST_CASE("a large input and a large result are looked at in part") {
  auto half = [](auto& in) {
    return with_backward({in[0]}, in[0] * in[0], [x = in[0].value()](const Tensor& dy, Grads& dx) {
      dx.add(0, (Var(dy) * x).value());
    });
  };
  Diagnosis d = diagnose(half, {random({40, 30})}, {.max_elements = 50});
  CHECK(d.mistake == Mistake::factor);
  int64_t known = 0;
  for (double v : d.inputs[0].numeric.to_vector()) known += !std::isnan(v);
  CHECK(known == 50);
  CHECK(diagnose([](auto& in) { return in[0] * in[0]; }, {random({40, 30})}, {.max_elements = 50}));
}

TEST_CASE("right ops are not accused") {
  int64_t looked_at = 0;
  for (const OpCase& c : op_cases()) {
    ++looked_at;
    CAPTURE(c.name);
    Diagnosis d = diagnose(c.op, sample_inputs(c, DType::f64),
                           {.tolerance = c.tolerance, .max_outputs = 40, .max_elements = 40});
    CAPTURE(d.sentence);
    CHECK(d.mistake == Mistake::none);
  }
  CHECK(looked_at > 100);
}

TEST_CASE("an input without elements is nothing to be wrong about") {
  Diagnosis d = diagnose([](const std::vector<Var>& in) { return concat({in[0], in[1]}, 0); },
                         {random({0, 3}), random({2, 3}, 2)});
  CHECK(static_cast<bool>(d));
  CHECK(d.inputs.size() == 2);
}
