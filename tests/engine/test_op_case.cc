// check_op_case must find every kind of mistake it exists for: deliberately wrong ops, one each.

#include <cmath>

#include <gradus/numeric.h>
#include <gradus/op_case.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>

#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

// Doubles x; the closure decides what goes back.
Var twice(const Var& x, Backward backward) {
  return record("twice", {x}, map(x.value(), [](auto v) { return 2 * v; }), std::move(backward));
}

Var right(const Var& x) {
  return twice(x, [](const Tensor& dy, Grads& dx) { dx.add(0, map(dy, [](auto g) { return 2 * g; })); });
}

std::string failures(const OpCase& c) {
  std::string all;
  for (const std::string& line : check_op_case(c)) all += line + "\n";
  return all;
}

}  // namespace

TEST_CASE("a right op has nothing to answer for") {
  CHECK(failures({"twice",
                  {{2, 3}},
                  [](auto& in) { return right(in[0]); },
                  [](auto& in) { return in[0] + in[0]; }}) == "");
}

TEST_CASE("a wrong backward is found") {
  std::string text = failures({"wrong", {{2, 3}}, [](auto& in) {
    return twice(in[0], [](const Tensor& dy, Grads& dx) { dx.add(0, dy); });
  }});
  CHECK(contains(text, "wrong: op: [gradcheck] failed: at least 1 of 6 derivatives, worst input0["));
}

TEST_CASE("a backward that throws is a failed check, not the end") {
  std::string text = failures({"throws", {{2}}, [](auto& in) {
    return twice(in[0], [](const Tensor&, Grads& dx) { dx.add(0, Tensor::zeros({3}, DType::f64)); });
  }});
  CHECK(
      contains(text,
               "throws: gradient check: threw [twice] the gradient must have its input's shape: input 0 [2], "
               "gradient [3]"));
}

TEST_CASE("a reference with other values, gradients or shape is found") {
  OpFunction op = [](auto& in) { return right(in[0]); };
  CHECK(contains(failures({"value", {{2}}, op, [](auto& in) { return in[0] * 2 + 1; }}),
                 "value: value differs from the reference by "));
  CHECK(contains(failures({"gradient", {{2}}, op, [](auto& in) { return in[0] + stop_gradient(in[0]); }}),
                 "gradient: gradient of input 0 differs from the reference by "));
  CHECK(contains(failures({"shape", {{2}}, op, [](auto& in) { return sum(in[0] * 2); }}),
                 "shape: reference has shape [], op [2]"));
}

TEST_CASE("an op that computes otherwise in f32 is found") {
  CHECK(contains(
      failures({"f32", {{2}}, [](auto& in) { return in[0] * (in[0].dtype() == DType::f32 ? 2.001 : 2); }}),
      "f32: f32 value differs from f64 by "));
  CHECK(contains(failures({"widens", {{2}}, [](auto& in) {
                   return record("widens", {in[0]}, in[0].value().to(DType::f64).clone(),
                                 [](const Tensor& dy, Grads& dx) { dx.add(0, dy); });
                 }}),
                 "widens: f32 inputs gave f64"));
}

TEST_CASE("an op that forgets a gradient when its neighbour is constant is found") {
  OpFunction forgets = [](auto& in) {
    bool both = in[0].requires_grad() && in[1].requires_grad();
    return both ? in[0] * in[1] : in[0] * stop_gradient(in[1]);
  };
  CHECK(contains(failures({"forgets", {{2}, {3, 1}}, forgets}),
                 "forgets: with input 0 constant the result lacks a gradient"));
  OpFunction doubles = [](auto& in) { return in[0] * in[1] * (in[0].requires_grad() ? 1 : 2); };
  CHECK(contains(failures({"doubles", {{2}, {2}}, doubles}),
                 "doubles: with input 0 constant the gradient of input 1 changes"));
}

TEST_CASE("an op that overwrites instead of adding is found when one Var comes twice") {
  OpFunction overwrites = [](auto& in) {
    Tensor y = zip(in[0].value(), in[1].value(), [](auto a, auto b) { return a + b; });
    bool same = in[0].node() == in[1].node();
    return record("overwrites", {in[0], in[1]}, y, [same](const Tensor& dy, Grads& dx) {
      dx.add(0, dy);
      if (!same) dx.add(1, dy);
    });
  };
  CHECK(contains(failures({"overwrites", {{2}, {2}}, overwrites}),
                 "overwrites: inputs 0 and 1 as one Var: the gradient is not the sum"));
}

TEST_CASE("an op that sets its accumulator is found, also where only f32 does") {
  for (bool only_float : {false, true}) {
    OpFunction sets = [only_float](auto& in) {
      return twice(in[0], [only_float](const Tensor& dy, Grads& dx) {
        Tensor g = dx.into(0);
        bool add = only_float && g.dtype() == DType::f64;
        for (int64_t i = 0; i < g.numel(); ++i) g.set(i, 2 * dy.at(i) + (add ? g.at(i) : 0));
      });
    };
    std::string text = failures({"sets", {{2, 3}}, sets});
    CHECK(contains(text, "the backward of twice sets (=) the gradient of "));
    CHECK(contains(text, "sets: f32: "));
    CHECK(contains(text, "sets: op: ") == !only_float);
  }
}

TEST_CASE("an elementwise op is looked at far from 0, in values and gradients") {
  // tanh with a fault between `from` and `to`.
  auto with = [](double from, double to, auto value, auto slope, bool only_float) -> OpFunction {
    return [=](auto& in) {
      Tensor x = in[0].value();
      auto at = [=](auto v) { return v > from && v < to && (!only_float || sizeof v == 4); };
      Tensor y = map(x, [=](auto v) { return at(v) ? static_cast<decltype(v)>(value) : std::tanh(v); });
      return record("own", {in[0]}, y, [=](const Tensor& dy, Grads& dx) {
        dx.add(0, zip(dy, x, [=](auto g, auto v) {
          auto t = std::tanh(v);
          return at(v) ? static_cast<decltype(v)>(slope) : g * (1 - t * t);
        }));
      });
    };
  };
  OpFunction reference = [](auto& in) { return tanh(in[0]); };
  CHECK(failures({"right", {{2, 3}}, with(0, 0, 0, 0, false), reference}) == "");
  for (bool only_float : {false, true})
    for (double from : {-27.0, -5.1, 2.2, 11.0}) {
      CAPTURE(from);
      CAPTURE(only_float);
      // NaN, infinity, and a wrong number, in the value or in the gradient.
      for (double bad : {kNaN, kInf, 0.25}) {
        CAPTURE(bad);
        std::string text = failures({"own", {{2, 3}}, with(from, from + 0.4, bad, 0, only_float), reference});
        CHECK_MESSAGE(contains(text, "own: "), text);
        text = failures({"own", {{2, 3}}, with(from, from + 0.4, 1e9, bad, only_float)});
        CHECK_MESSAGE(contains(text, "own: "), text);
      }
    }
  CHECK(contains(failures({"own", {{2, 3}}, with(4, 5, kNaN, 0, true)}), "own: f32 value is nan at 4.0"));
  // Ranges keep to their side of 0; a softmax is no op of single elements.
  CHECK(failures({"root", {{Shape{4}, 0.5, 2}}, [](auto& in) { return sqrt(in[0]) + log(in[0]); }}) == "");
  CHECK(failures({"softmax", {{2, 3}}, [](auto& in) {
                    return exp(in[0] - logsumexp(in[0], {.axes = {1}, .keep_dims = true}));
                  }}) == "");
  // Two inputs at all combinations of sides, but for the kink where they are equal.
  CHECK(failures({"max", {{2, 3}, {2, 3}}, [](auto& in) { return maximum(in[0], in[1]) * in[1]; }}) == "");
}

TEST_CASE("a backward that gives NaN at one element is found") {
  OpFunction f = [](auto& in) {
    return twice(in[0], [](const Tensor& dy, Grads& dx) {
      Tensor g = map(dy, [](auto v) { return 2 * v; });
      g.set(1, kNaN);
      dx.add(0, g);
    });
  };
  std::string text = failures({"nan", {{2, 3}}, f});
  CHECK(contains(text,
                 "nan: op: [gradcheck] failed: at least 1 of 6 derivatives, worst input0[0,1]: analytic nan"));
  CHECK(contains(text, "f32 gradient of input 0 differs from f64 by inf"));
}

TEST_CASE("sample inputs are the same every time and keep to their range") {
  OpCase c{"c", {{Shape{50}, 2, 3}, Tensor::from_ids({2}, {4, 5}), Tensor::from({1}, {7}, DType::f32)}, {}};
  std::vector<Tensor> a = sample_inputs(c, DType::f64), b = sample_inputs(c, DType::f32);
  for (double v : a[0].to_vector()) CHECK((v >= 2 && v < 3));
  CHECK(max_abs_difference(a[0], b[0].to(DType::f64)) < 1e-6);
  CHECK(a[1].dtype() == DType::i32);
  CHECK(a[2].dtype() == DType::f64);
  CHECK(a[2].item() == 7);
}
