// The gradient check itself: passes what is right, fails what is wrong, and says where and why.

#include <cmath>

#include <gradus/gradcheck.h>
#include <gradus/numeric.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>
#include <gradus/random.h>

#include "../about.h"
#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

// x^2 whose backward is off by `wrong` at element `at`.
Var square(const Var& x, int64_t at = -1, double wrong = 0) {
  Tensor y = (Var(x.value()) * Var(x.value())).value();
  return record("square", {x}, y, [x = x.value(), at, wrong](const Tensor& dy, Grads& dx) {
    Tensor g = dy.clone();
    for (int64_t i = 0; i < g.numel(); ++i) g.set(i, dy.at(i) * (2 * x.at(i) + (i == at ? wrong : 0)));
    dx.add(0, g);
  });
}

}  // namespace

TEST_CASE("inputs can have names") {
  auto wrong = [](auto& in) { return square(in[0], 0, 1) * in[1]; };
  GradcheckReport r = gradcheck(wrong, {f64({2}, {1, 2}), f64({2}, {3, 4})}, {.names = {"x", "scale"}});
  CHECK_FALSE(r);
  CHECK(r.worst_name == "x[0]");
  CHECK(gradcheck(wrong, {f64({2}, {1, 2}), f64({2}, {3, 4})}, {.names = {"x"}}).worst_name ==
        "x[0]");  // one for two
}

TEST_CASE("a captured module in f32 is told what to do") {
  Var weight = variable(f32({2}, {1, 2}));
  CHECK(error_of([&] { gradcheck([&](auto& in) { return in[0] * weight; }, {f64({2}, {1, 2})}); })
            .find("element types must agree: f64 and f32") != std::string::npos);
  CHECK(error_of([&] {
          gradcheck([&](auto& in) { return in[0] * weight; }, {f64({2}, {1, 2})});
        })
            .ends_with("; hint: what is checked is f64. A constant: .to(DType::f64). A module that is "
                       "captured: nn::gradcheck(module, ...), or nn::to it. A part of a module: does params() "
                       "visit it?"));
}

TEST_CASE("a right gradient passes") {
  GradcheckReport r = gradcheck([](auto& in) { return square(in[0]) * in[1]; },
                                {f64({2, 3}, {1, 2, 3, -1, -2, 0.5}), f64({3}, {1, 2, 3})});
  CHECK(r);
  CHECK(r.checked == 9);
  CHECK(r.worst_error < 1e-8);
  CHECK(contains(r.message, "[gradcheck] passed: all of 9 derivatives, worst input"));
}

TEST_CASE("a wrong gradient fails and the worst element is named") {
  Parameter w(f64({2, 3}, {1, 2, 3, 4, 5, 6}), "w"), b(f64({3}, {1, 2, 3}), "b");
  GradcheckReport r = gradcheck([&] { return sum(square(w, 4, 0.5) + b.var()); },
                                {{"decoder.weight", &w}, {"decoder.bias", &b}});
  CHECK_FALSE(r);
  CHECK(r.worst_name == "decoder.weight[1,1]");
  CHECK(r.analytic == about(10.5));
  CHECK(r.numeric == about(10));
  CHECK(contains(r.message,
                 "[gradcheck] failed: at least 1 of 9 derivatives, worst decoder.weight[1,1]: analytic 10.5, "
                 "numeric "));
  CHECK_FALSE(contains(r.message, "kink"));
}

TEST_CASE("the parameters are left as they were") {
  Parameter w(f64({3}, {0.1, 0.2, 0.3}), "w"), large(Tensor::full({1000}, 0.7, DType::f64), "large");
  CHECK(gradcheck([&] { return sum(tanh(w)) + sum(tanh(large)); }, {{"w", &w}, {"large", &large}}));
  CHECK(w.value().to_vector() == Numbers{0.1, 0.2, 0.3});
  CHECK(large.value().to_vector() == Numbers(1000, 0.7));
}

TEST_CASE("large parameters are checked along random directions") {
  Rng rng(2);
  Parameter w(Tensor::uniform({30, 30}, -1, 1, rng, DType::f64), "w");
  GradcheckReport good = gradcheck([&] { return sum(square(w)); }, {{"w", &w}}, {.directions = 5});
  CHECK(good);
  CHECK(good.checked == 5);
  // One wrong element out of 900 shows in every direction.
  GradcheckReport bad = gradcheck([&] { return sum(square(w, 123, 0.5)); }, {{"w", &w}}, {.directions = 5});
  CHECK_FALSE(bad);
  CHECK(contains(bad.worst_name, "w along direction "));
  GradcheckReport all =
      gradcheck([&] { return sum(square(w, 123, 0.5)); }, {{"w", &w}}, {.max_elements = 900});
  CHECK(all.worst_name == "w[4,3]");
}

TEST_CASE("an output that is not a scalar is checked whole") {
  // Two mistakes that cancel in the plain sum do not in the weighted one.
  auto cancelling = [](auto& in) {
    return record("cancel", {in[0]}, in[0].value().clone(), [](const Tensor& dy, Grads& dx) {
      dx.add(0, f64({2}, {dy.at(1), dy.at(0)}));
    });
  };
  CHECK_FALSE(gradcheck(cancelling, {f64({2}, {1, 2})}));
}

TEST_CASE("a function that is not deterministic is named as such") {
  int calls = 0;
  auto f = [&](auto& in) { return in[0] * static_cast<double>(++calls); };
  GradcheckReport r = gradcheck(f, {f64({}, {1})});
  CHECK_FALSE(r);
  CHECK(
      r.message ==
      "[gradcheck] the function is not deterministic: two calls at one point gave two results (dropout on?)");
}

TEST_CASE("a gradient of NaN is no chance: it is named as what it is") {
  auto f = [](auto& in) {
    return record("nan", {in[0]}, in[0].value().clone(),
                  [](const Tensor& dy, Grads& dx) { dx.add(0, f64({2}, {dy.at(0), NAN})); });
  };
  GradcheckReport r = gradcheck(f, {f64({2}, {1, 2})});
  CHECK_FALSE(r);
  CHECK(contains(r.message, "worst input0[1]: analytic nan, numeric"));
  CHECK_MESSAGE(r.diagnosis.mistake == Mistake::unknown, r.message);  // and neither chance nor dy
}

TEST_CASE("a large parameter is checked along one direction at least") {
  auto wrong = [](auto& in) {
    return record("wrong", {in[0]}, in[0].value().clone(),
                  [](const Tensor& dy, Grads& dx) { dx.add(0, Tensor::full(dy.shape(), 3, DType::f64)); });
  };
  CHECK_FALSE(gradcheck(wrong, {f64({2}, {1, 2})}, {.max_elements = 0, .directions = 0}));
}

TEST_CASE("float is refused") {
  Parameter w(f32({2}, {1, 2}), "w");
  CHECK(gradcheck([&] { return sum(w.var() * 2); }, {{"layer.w", &w}}).message ==
        "[gradcheck] central differences need f64, and layer.w is f32");
  auto to_float = [](auto& in) {
    return record("narrow", {in[0]}, in[0].value().to(DType::f32), [](auto&, auto&) {});
  };
  CHECK(gradcheck(to_float, {f64({}, {1})}).message ==
        "[gradcheck] the function returned f32: it must compute in f64 throughout");
  CHECK(gradcheck([](auto& in) { return in[0] * 2; }, {f32({2}, {1, 2})}));  // plain inputs are converted
}

TEST_CASE("a kink is called a kink") {
  GradcheckReport r = gradcheck([](auto& in) { return relu(in[0]); }, {f64({2}, {1, 0})});
  CHECK_FALSE(r);
  CHECK(r.worst_name == "input0[1]");
  CHECK(contains(r.message, "; the function has a kink there (relu, max, abs?): move the point"));
}

TEST_CASE("a lost connection is called one") {
  GradcheckReport r =
      gradcheck([](auto& in) { return in[0] * stop_gradient(in[1]); }, {f64({}, {2}), f64({}, {3})});
  CHECK_FALSE(r);
  CHECK(r.worst_name == "input1");
  CHECK(contains(r.message, "; no gradient reached it: the graph is not connected"));
  CHECK(gradcheck([](auto& in) { return stop_gradient(in[0]); }, {f64({}, {2})}).message ==
        "[gradcheck] the result depends on no parameter: is something detached?");
}

TEST_CASE("a parameter that plays no part is mentioned, not failed") {
  Parameter w(f64({2}, {1, 2}), "w"), idle(f64({2}, {1, 2}), "idle");
  GradcheckReport r = gradcheck([&] { return sum(square(w)); }, {{"w", &w}, {"idle", &idle}});
  CHECK(r);
  CHECK(contains(r.message, "; the result does not depend on idle"));
}

TEST_CASE("a result that is not finite is called that") {
  CHECK(gradcheck([](auto& in) { return log(in[0]); }, {f64({}, {-1})}).message ==
        "[gradcheck] the function is NaN at this point");
  // Finite here, with an infinite slope.
  GradcheckReport r = gradcheck([](auto& in) { return sqrt(in[0]); }, {f64({}, {0})});
  CHECK_FALSE(r);
}

TEST_CASE("an op that sets its accumulator instead of adding to it fails, and is named") {
  // Right by itself: nothing else has arrived when its backward runs.
  auto set = [](const Var& x) {
    return record("setting", {x}, (x * x).value(), [x = x.value()](const Tensor& dy, Grads& dx) {
      Tensor g = dx.into(0);
      for (int64_t i = 0; i < g.numel(); ++i) g.set(i, 2 * x.at(i) * dy.at(i));
    });
  };
  Tensor x = f64({3}, {1, -2, 0.5});
  GradcheckReport alone = gradcheck([&](auto& in) { return set(in[0]); }, {x});
  CHECK_FALSE(alone);
  CHECK(alone.diagnosis.mistake == Mistake::overwritten);
  CHECK(alone.message ==
        "[gradcheck] failed: all of 3 derivatives agree, but the backward of setting sets (=) the gradient of "
        "input0, "
        "so what other uses of input0 have sent (here 3 to each number) is lost: add to it (+=)");
  GradcheckReport beside = gradcheck([&](auto& in) { return in[0] * 3 + set(in[0]); }, {x});
  CHECK_FALSE(beside);
  CHECK(beside.diagnosis.mistake == Mistake::overwritten);
  // In the middle of others it is the accumulator of a value on the way that is set.
  GradcheckReport inside = gradcheck([&](auto& in) { return sum(tanh(set(tanh(in[0])) * in[1])); }, {x, x});
  CHECK_FALSE(inside);
  CHECK(contains(inside.message, "the backward of setting sets (=) the gradient of its input"));
  CHECK(inside.diagnosis.name == "input0");
  // Adding is right, also in parts and where one Var comes twice.
  auto adding = [](const Var& a, const Var& b) {
    return record("adding", {a, b}, (a * b).value(),
                  [a = a.value(), b = b.value()](const Tensor& dy, Grads& dx) {
                    for (int k : {0, 1}) {
                      Tensor g = dx.into(k);
                      for (int64_t i = 0; i < g.numel(); ++i) g.set(i, g.at(i) + (k ? a : b).at(i) * dy.at(i));
                    }
                  });
  };
  CHECK(gradcheck([&](auto& in) { return in[0] * 3 + adding(in[0], in[0]); }, {x}));
}

TEST_CASE("a backward that writes into dy fails, be its own gradient right or not") {
  auto op = [](bool right) {
    return [right](auto& in) {
      return record("scratch", {in[0]}, (in[0] * 2).value(), [right](const Tensor& dy, Grads& dx) {
        for (int64_t i = 0; i < dy.numel(); ++i) dy.set(i, right ? 2 * dy.at(i) : 0);
        dx.add(0, dy);
      });
    };
  };
  for (bool right : {false, true}) {
    GradcheckReport r = gradcheck(op(right), {f64({3}, {1, -2, 0.5})});
    CHECK_FALSE(r);
    CHECK(r.message == "[gradcheck] a backward writes into dy, which others may hold: use a copy");
    CHECK(r.diagnosis.mistake == Mistake::overwritten);
  }
}

TEST_CASE("a backward that writes into what it captured fails, though its first run is right") {
  GradcheckReport r = gradcheck(
      [](auto& in) {
        return record("square", {in[0]}, (in[0] * in[0]).value(),
                      [twice = (in[0] * 2).value()](const Tensor& dy, Grads& dx) {
                        for (int64_t i = 0; i < dy.numel(); ++i) twice.set(i, twice.at(i) * dy.at(i));
                        dx.add(0, twice.clone());
                      });
      },
      {f64({3}, {1, -2, 0.5})});
  CHECK_FALSE(r);
  CHECK(r.message == "[gradcheck] a backward writes into what it captured: its second run differs");
}

TEST_CASE("a loss whose backward does not multiply by dy fails, though it is right for dy = 1") {
  auto loss = [](auto& in) {
    Var y = sum(in[0] * in[0]);
    return record("loss", {in[0]}, y.value(), [x = in[0].value()](const Tensor&, Grads& dx) {
      dx.add(0, map(x, [](auto v) { return 2 * v; }));
    });
  };
  GradcheckReport r = gradcheck(loss, {f64({3}, {1, -2, 0.5})});
  CHECK_FALSE(r);
  CHECK(contains(r.message, "the gradient is right for dy = 1 alone: the backward does not multiply by dy"));
  CHECK(r.diagnosis.mistake == Mistake::not_linear);
  // The figures of a scalar are its own.
  CHECK(gradcheck([](auto& in) { return sum(in[0] * 3); }, {f64({1}, {1})}).analytic == 3);
}

TEST_CASE("NaN fails, wherever it is") {
  auto op = [](auto forward, auto backward) {
    return [forward, backward](auto& in) {
      return record("own", {in[0]}, map(in[0].value(), forward),
                    [x = in[0].value(), backward](const Tensor& dy, Grads& dx) {
                      dx.add(0, zip(dy, x, [&](auto g, auto v) { return g * backward(v); }));
                    });
    };
  };
  auto twice = [](auto v) { return 2 * v; };
  auto two = [](auto) { return 2.0; };
  Tensor x = f64({4}, {0.5, 1, 1.5, 2});
  CHECK(gradcheck(op(twice, two), {x}));
  for (double bad : {kNaN, kInf, -kInf})
    for (double at : x.to_vector()) {
      CAPTURE(bad);
      CAPTURE(at);
      GradcheckReport r = gradcheck(op(twice, [=](auto v) { return v == at ? bad : 2.0; }), {x});
      CHECK_FALSE(r);
      CHECK(r.worst_error == kInf);
      CHECK(contains(r.worst_name, "input0["));
      CHECK_FALSE(gradcheck(op(twice, [=](auto v) { return v == at ? bad : 2.0; }), {x}, {.max_elements = 2}));
      // The value is a number at the point itself, and none next to it.
      GradcheckReport n =
          gradcheck(op([=](auto v) { return v > at && v < at + 1e-4 ? bad : 2 * v; }, two), {x});
      CHECK_FALSE(n);
      CHECK(n.worst_error == kInf);
    }
}

TEST_CASE("a gradient that is small beside the value, or beside others, is compared to its own digits") {
  auto off = [](double factor) {
    return [factor](const std::vector<Var>& in) {
      Var y =
          record("off", {in[0]}, map(in[0].value(), [](auto v) { return 1e-7 * std::sin(v); }),
                 [x = in[0].value(), factor](const Tensor& dy, Grads& dx) {
                   dx.add(0, zip(dy, x, [factor](auto g, auto v) { return factor * 1e-7 * g * std::cos(v); }));
                 });
      return sum(y) + sum(in[1] * in[1]) + 3;
    };
  };
  std::vector<Tensor> at{f64({3}, {0.3, 0.7, -1.2}), f64({2}, {2, -3})};
  CHECK(gradcheck(off(1), at));
  GradcheckReport r = gradcheck(off(1.01), at);
  CHECK_FALSE(r);
  CHECK(contains(r.worst_name, "input0["));
  CHECK_FALSE(gradcheck(off(0.99), at, {.max_elements = 1}));
  // A derivative that is 0, computed as the difference of equal ones, is rounding, not an error.
  CHECK(gradcheck([](auto& in) { return sum(exp(in[0] - logsumexp(in[0])) * 3) + sum(in[0]) * 1e-9; },
                  {f64({4}, {3, 1, -2, 0.5})}));
}

TEST_CASE("ids are passed on as constants") {
  GradcheckReport r = gradcheck([](auto& in) { return gather_rows(in[0], in[1].value()); },
                                {f64({3, 2}, {1, 2, 3, 4, 5, 6}), Tensor::from_ids({2}, {2, 2})});
  CHECK(r);
  CHECK(r.checked == 6);
}

TEST_CASE("a function that throws leaves its parameters where they were") {
  Parameter w(f64({3}, {0.25, 0.5, -2}));
  auto f = [&] {
    if (w.value().to_vector() != std::vector<double>{0.25, 0.5, -2}) throw Error("somewhere else");
    return sum(w * w);
  };
  const std::vector<NamedParameter> parameters{{"w", &w}};
  for (int64_t elements : {10, 1})  // each by itself, and along directions
    CHECK_THROWS_WITH(gradcheck(f, parameters, {.max_elements = elements}),
                      doctest::Contains("somewhere else"));
  CHECK_THROWS_WITH(diagnose(f, parameters), doctest::Contains("somewhere else"));
  CHECK(w.value().to_vector() == std::vector<double>{0.25, 0.5, -2});
}

TEST_CASE("a function that is constant passes, though rounding says otherwise") {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Rng rng(seed);
    const Tensor x = Tensor::uniform({4, 5}, -1, 1, rng, DType::f64);
    const GradcheckReport r = gradcheck([](auto& in) { return mean(in[0] - mean(in[0])); }, {x});
    INFO(r.message);
    CHECK(r);
  }
}
