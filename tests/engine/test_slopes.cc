// Backwards that are wrong in a factor or in a term, each with the sentence that must name it; and that nothing
// is named where nothing fits.

#include <gradus/diagnosis.h>
#include <gradus/numeric.h>
#include <gradus/ops.h>
#include <gradus/random.h>

#include <cmath>
#include <set>

#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

Tensor positive_numbers(const Shape& shape, uint64_t seed = 1) {
  Rng rng(seed);
  return Tensor::uniform(shape, 0.2, 1.7, rng, DType::f64);
}

double logistic_of(double x) { return 1 / (1 + std::exp(-x)); }
double mish_gate(double x) { return std::tanh(std::log1p(std::exp(x))); }  // y / x of mish

// y = f(x) one by one, with a slope of one's own.
struct SlopeCase {
  const char* op;
  double (*f)(double x);
  double (*slope)(double x, double y);
  const char* expected;
};

const SlopeCase kSlopes[] = {
    {"tanh", std::tanh, [](double, double y) { return y * (1 - y); },
     "it has y (1 - y) where 1 - y^2 belongs"},
    {"tanh", std::tanh, [](double x, double) { return 1 - x * x; },
     "it has 1 - input0^2 where 1 - y^2 belongs"},
    {"tanh", std::tanh, [](double, double y) { return y * (1 - y * y); }, "it has a factor y too many"},
    {"tanh", std::tanh, [](double x, double y) { return x * (1 - y * y); },
     "it has a factor input0 too many"},
    {"tanh", std::tanh, [](double, double) { return 1.0; }, "it lacks the factor 1 - y^2"},
    {"tanh", std::tanh, [](double, double y) { return 1 - y; }, "it lacks the factor 1 + y"},
    {"tanh", std::tanh, [](double, double y) { return 1 + y * y; }, "it has 1 + y^2 where 1 - y^2 belongs"},
    {"tanh", std::tanh, [](double, double y) { return y; }, "it has y where 1 - y^2 belongs"},
    {"tanh", std::tanh, [](double, double y) { return (1 - y * y) * (1 - y * y); },
     "a factor 1 - y^2 too many"},
    {"tanh", std::tanh, [](double, double y) { return -y * (1 - y * y); },
     "y too many, or the division by it is "
     "missing, and the sign is wrong"},
    {"sigmoid", logistic_of, [](double, double) { return 1.0; }, "it lacks the factor y (1 - y)"},
    {"sigmoid", logistic_of, [](double, double y) { return y; }, "it lacks the factor 1 - y"},
    {"sigmoid", logistic_of, [](double, double y) { return 1 - y; }, "it lacks the factor y"},
    {"sigmoid", logistic_of, [](double, double y) { return 1 - y * y; },
     "it has 1 - y^2 where y (1 - y) belongs"},
    {"sigmoid", logistic_of, [](double x, double) { return x * (1 - x); },
     "it has input0 (1 - input0) where y (1 - y) belongs"},
    {"sigmoid", logistic_of, [](double x, double y) { return x * (1 - y); }, "it has input0 where y belongs"},
    {"sigmoid", logistic_of, [](double, double y) { return y * (1 + y); },
     "it has 1 + y where 1 - y belongs"},
    {"sigmoid", logistic_of, [](double, double y) { return y * y * (1 - y); }, "it has a factor y too many"},
    {"sigmoid", logistic_of, [](double, double y) { return 2 * y; },
     "it lacks the factor 1 - y, and it is 2 times"},
    {"exp", std::exp, [](double, double) { return 1.0; }, "it lacks the factor y"},
    {"exp", std::exp, [](double x, double) { return x; }, "it has input0 where y belongs"},
    {"exp", std::exp, [](double x, double y) { return x * y; }, "it has a factor input0 too many"},
    {"log", std::log, [](double, double) { return 1.0; }, "the division by it is missing"},
    {"log", std::log, [](double x, double) { return x; }, "it has a factor input0^2 too many"},
    {"log", std::log, [](double, double y) { return 1 / y; }, "it has input0 where y belongs"},
    {"log", std::log, [](double x, double) { return -1 / x / x; },
     "it lacks the factor input0, and the sign is wrong"},
    {"sqrt", std::sqrt, [](double, double) { return 0.5; },
     "a factor y too many, or the division by it is missing"},
    {"sqrt", std::sqrt, [](double x, double) { return 0.5 / x; }, "it lacks the factor y"},
    {"sqrt", std::sqrt, [](double, double y) { return y; },
     "too many, or the division by it is missing, and it is 2"},
    {"square", [](double x) { return x * x; }, [](double, double) { return 2.0; },
     "it lacks the factor input0"},
    {"square", [](double x) { return x * x; }, [](double, double y) { return 2 * y; },
     "a factor input0 too many"},
    {"square", [](double x) { return x * x; }, [](double, double) { return 1.0; },
     "it lacks the factor input0, and "
     "it is 0.5 times"},
    {"cube", [](double x) { return x * x * x; }, [](double x, double) { return 3 * x; },
     "lacks the factor input0"},
    {"cube", [](double x) { return x * x * x; }, [](double, double y) { return 3 * y; },
     "a factor input0 too many"},
    {"1/x", [](double x) { return 1 / x; }, [](double, double) { return -1.0; }, "it lacks the factor y^2"},
    {"1/x", [](double x) { return 1 / x; }, [](double, double y) { return -y; }, "it lacks the factor y"},
    {"1/x", [](double x) { return 1 / x; }, [](double, double y) { return y; },
     "lacks the factor y, and the sign"},
    {"sin", [](double x) { return std::sin(x); }, [](double x, double) { return std::sin(x); },
     "it has y where cos(input0) belongs"},
    {"sin", [](double x) { return std::sin(x); }, [](double, double) { return 1.0; },
     "lacks the factor cos(input0)"},
    {"cos", [](double x) { return std::cos(x); }, [](double, double) { return -1.0; },
     "lacks the factor sin(input0)"},
    {"softplus", [](double x) { return std::log1p(std::exp(x)); }, [](double, double) { return 1.0; },
     "it lacks the factor s(input0)"},
    {"softplus", [](double x) { return std::log1p(std::exp(x)); },
     [](double x, double) { return logistic_of(x) * (1 - logistic_of(x)); },
     "it has a factor 1 - s(input0) too many"},
    {"softplus", [](double x) { return std::log1p(std::exp(x)); },
     [](double x, double) { return 1 - logistic_of(x); },
     "it has 1 - s(input0) where s(input0) belongs"},
    {"log cosh", [](double x) { return std::log(std::cosh(x)); },
     [](double x, double) { return 1 - std::pow(std::tanh(x), 2); },
     "it has 1 - tanh(input0)^2 where tanh(input0) belongs"},
    {"atan", [](double x) { return std::atan(x); }, [](double, double) { return 1.0; },
     "a factor 1 + input0^2 too many, or the division by it is missing"},
    // x f(x)
    {"swish", [](double x) { return x * logistic_of(x); }, [](double x, double) { return logistic_of(x); },
     "with input0 used twice, as in y = input0 f(input0): it is dy f alone"},
    {"swish", [](double x) { return x * logistic_of(x); },
     [](double x, double) { return x * logistic_of(x) * (1 - logistic_of(x)); },
     "only what goes through f is there, and dy f is missing"},
    {"swish", [](double x) { return x * logistic_of(x); },
     [](double x, double) { return logistic_of(x) + logistic_of(x) * (1 - logistic_of(x)); },
     "what goes through f lacks the factor input0"},
    {"swish", [](double x) { return x * logistic_of(x); },
     [](double x, double) { return logistic_of(x) + x * logistic_of(x); },
     "what goes through f lacks the factor 1 - s(input0)"},
    {"swish", [](double x) { return x * logistic_of(x); },
     [](double x, double) { return logistic_of(x) - x * logistic_of(x) * (1 - logistic_of(x)); },
     "what goes through f is subtracted"},
    {"mish", [](double x) { return x * mish_gate(x); }, [](double x, double) { return mish_gate(x); },
     "it is dy f alone"},
    {"mish", [](double x) { return x * mish_gate(x); },
     [](double x, double) { return x * (1 - mish_gate(x) * mish_gate(x)) * logistic_of(x); },
     "dy f is missing"},
    {"mish", [](double x) { return x * mish_gate(x); },
     [](double x, double) { return mish_gate(x) + x * (1 - mish_gate(x) * mish_gate(x)); },
     "what goes through f lacks the factor s(input0)"},
    {"x tanh", [](double x) { return x * std::tanh(x); }, [](double x, double) { return std::tanh(x) + x; },
     "what goes through f lacks the factor 1 - tanh(input0)^2"},
    // sums
    {"residual", [](double x) { return x + std::tanh(3 * x); },
     [](double x, double) { return 3 * (1 - std::pow(std::tanh(3 * x), 2)); },
     "dy times 1 too small: dy itself"},
    {"sin x + x^2", [](double x) { return std::sin(x) + x * x; },
     [](double x, double) { return std::cos(x) + x; }, "it is dy times input0 too small"},
};

// The value of an op with the backward of `other`, which has the value of its own.
using RowOp = Var (*)(const std::vector<Var>&);
struct RowCase {
  const char* op;
  RowOp right;
  Tensor (*dx)(const Var& x, const Var& y, const Var& dy);  // of input0; the other inputs' are right
  const char* expected;
};

Var row_sum(const Var& v, int axis = 1) { return sum(v, {.axes = {axis}, .keep_dims = true}); }
Var row_mean(const Var& v) { return row_sum(v) / static_cast<double>(v.size(1)); }
Var row_softmax(const std::vector<Var>& in) { return softmax(in[0]); }
Var row_log_softmax(const std::vector<Var>& in) { return log_softmax(in[0]); }
Var centred(const std::vector<Var>& in) { return in[0] - row_mean(in[0]); }
Var row_length(const Var& x) { return sqrt(row_sum(x * x)); }
Var unit_rows(const std::vector<Var>& in) { return in[0] / row_length(in[0]); }
Var normalised(const std::vector<Var>& in) {
  Var c = in[0] - row_mean(in[0]);
  return c / sqrt(row_mean(c * c));
}
Var row_deviation(const Var& x) {
  Var c = x - row_mean(x);
  return sqrt(row_mean(c * c));
}

const RowCase kRows[] = {
    {"softmax", row_softmax, [](auto&, auto& y, auto& dy) { return (y * (dy + row_sum(y * dy))).value(); },
     "the term with y (dy . y) has the wrong sign: what is averaged over a row is added (+)"},
    {"softmax", row_softmax, [](auto&, auto& y, auto& dy) { return (y * (dy - row_sum(y * dy, 0))).value(); },
     "it sums along axis 0, and must along axis 1"},
    {"softmax", row_softmax, [](auto&, auto& y, auto& dy) { return (dy - y * row_sum(y * dy)).value(); },
     "what each sends itself, before the sum, is dy times 1 - y too large"},
    {"softmax", row_softmax, [](auto&, auto& y, auto& dy) { return (dy - row_sum(y * dy)).value(); },
     "it lacks the factor y"},
    {"softmax", row_softmax, [](auto&, auto& y, auto& dy) { return (y * dy - row_sum(y * dy)).value(); },
     "lacks the factor y"},
    {"softmax", row_softmax, [](auto& x, auto& y, auto& dy) { return (x * (dy - row_sum(y * dy))).value(); },
     "it has input0 where y belongs"},
    {"softmax", row_softmax, [](auto& x, auto& y, auto& dy) { return (y * (dy - row_sum(x * dy))).value(); },
     "within the sum over a row it has input0 where y belongs"},
    {"softmax", row_softmax, [](auto&, auto& y, auto& dy) { return (y * (dy - row_mean(dy))).value(); },
     "within the sum over a row it lacks the factor y"},
    {"softmax of columns", [](auto& in) { return softmax(in[0], {.axis = 0}); },
     [](auto&, auto& y, auto& dy) { return (y * (dy - row_sum(dy, 0) / 4.0)).value(); },
     "within the sum over a column it lacks the factor y"},
    {"softmax", row_softmax,
     [](auto&, auto& y, auto& dy) { return (y * (dy - 2.0 * row_sum(y * dy))).value(); },
     "the term with y (dy . y), summed over a row, is missing or of the wrong size"},
    {"softmax", row_softmax, [](auto&, auto& y, auto& dy) { return (y * dy).value(); }, "it is dy y without"},
    {"softmax", row_softmax, [](auto&, auto& y, auto& dy) { return (y * (1.0 - y) * dy).value(); },
     "only the diagonal"},
    {"log softmax", row_log_softmax, [](auto&, auto&, auto& dy) { return dy.value(); },
     "the term with exp(y) sum(dy), summed over a row, is missing: raising one element"},
    {"log softmax", row_log_softmax,
     [](auto&, auto& y, auto& dy) { return (dy + exp(y) * row_sum(dy)).value(); },
     "the term with exp(y) sum(dy) has the wrong sign"},
    {"log softmax", row_log_softmax, [](auto&, auto& y, auto& dy) { return (dy - y * row_sum(dy)).value(); },
     "has y where exp(y) belongs"},
    {"log softmax", row_log_softmax, [](auto&, auto&, auto& dy) { return (dy - row_mean(dy)).value(); },
     "lacks the factor exp(y)"},
    {"centred", centred, [](auto&, auto&, auto& dy) { return dy.value(); },
     "the term with sum(dy), summed over a row, is missing"},
    {"centred", centred, [](auto&, auto&, auto& dy) { return (dy + row_mean(dy)).value(); },
     "the term with sum(dy) has the wrong sign"},
    {"centred", centred, [](auto&, auto&, auto& dy) { return (dy - row_sum(dy, 0) / 4.0).value(); },
     "it sums along axis 0, and must along axis 1"},
    {"unit", unit_rows, [](auto& x, auto&, auto& dy) { return (dy / row_length(x)).value(); },
     "the term with y (dy . y), summed over a row, is missing"},
    {"unit", unit_rows,
     [](auto& x, auto& y, auto& dy) { return ((dy + y * row_sum(dy * y)) / row_length(x)).value(); },
     "the term with y (dy . y) has the wrong sign"},
    {"unit", unit_rows, [](auto&, auto& y, auto& dy) { return (dy - y * row_sum(dy * y)).value(); },
     "it is right but for a factor of each row, from "},
    {"normalised", normalised,
     [](auto& x, auto& y, auto& dy) { return ((dy - y * row_mean(dy * y)) / row_deviation(x)).value(); },
     "the term with sum(dy), summed over a row, is missing"},
    {"normalised", normalised,
     [](auto& x, auto&, auto& dy) { return ((dy - row_mean(dy)) / row_deviation(x)).value(); },
     "the term with y (dy . y), summed over a row, is missing"},
    {"normalised", normalised, [](auto& x, auto&, auto& dy) { return (dy / row_deviation(x)).value(); },
     "each row of the gradient must sum to 0, as the result does not change when the same number is added to a "
     "whole row of input0; row 0 of yours sums to"},
    {"variance", [](auto& in) { return sum(centred(in) * centred(in), 1); },
     [](auto& x, auto&, auto& dy) {
       return (2.0 * x * reshape(dy, {-1, 1})).value();
     },
     "each row of the gradient must sum to 0"},
    {"length", [](auto& in) { return sqrt(sum(in[0] * in[0], 1)); },
     [](auto& x, auto&, auto& dy) {
       return (reshape(dy, {-1, 1}) * x).value();
     },
     "a factor y too many, or the division"},
    {"logsumexp", [](auto& in) { return log(sum(exp(in[0]), 1)); },
     [](auto& x, auto&, auto& dy) {
       return (reshape(dy, {-1, 1}) * exp(x)).value();
     },
     "exp("},
    {"logsumexp", [](auto& in) { return log(sum(exp(in[0]), 1)); },
     [](auto& x, auto&, auto& dy) {
       return (reshape(dy, {-1, 1}) + x * 0.0).value();
     },
     "lacks the factor exp(input0 - y)"},
    // with another input
    {"product", [](auto& in) { return in[0] * in[1]; }, [](auto&, auto&, auto& dy) { return dy.value(); },
     "it lacks the factor input1"},
    {"product", [](auto& in) { return in[0] * in[1]; },
     [](auto& x, auto&, auto& dy) { return (dy * x).value(); }, "it is the gradient of input1"},
    {"gate", [](auto& in) { return in[1] * sigmoid(in[0]); },
     [](auto& x, auto& y, auto& dy) { return (dy * y + 0.0 * x).value(); },
     "it lacks the factor 1 - s(input0)"},
    {"gate", [](auto& in) { return in[1] * sigmoid(in[0]); },
     [](auto& x, auto&, auto& dy) { return (dy * sigmoid(x) * (1.0 - sigmoid(x))).value(); },
     "it lacks the factor input1"},
    {"tanh(w x)", [](auto& in) { return tanh(in[1] * in[0]); },
     [](auto&, auto& y, auto& dy) { return (dy * (1.0 - y * y)).value(); }, "it lacks the factor input1"},
    {"quotient", [](auto& in) { return in[0] / in[1]; }, [](auto&, auto&, auto& dy) { return dy.value(); },
     "a factor input1 too many, or the division by it is missing"},
};

Diagnosis of_slope(const SlopeCase& c, double (*slope)(double, double), const Tensor& x) {
  return diagnose(
      [&](const std::vector<Var>& in) {
        Tensor y =
            map(in[0].value(), [&](auto v) { return static_cast<decltype(v)>(c.f(static_cast<double>(v))); });
        return record(c.op, {in[0]}, y, [=, x = in[0].value()](const Tensor& dy, Grads& dx) {
          Tensor g(x.shape(), DType::f64);
          for (int64_t i = 0; i < x.numel(); ++i) g.set(i, dy.at(i) * slope(x.at(i), y.at(i)));
          dx.add(0, g);
        });
      },
      {x});
}

}  // namespace

TEST_CASE("slopes: what is wrong between x and y one by one is named") {
  for (const SlopeCase& c : kSlopes) {
    Diagnosis d = of_slope(c, c.slope, positive_numbers({2, 4}));
    INFO(std::string(c.op), ": ", std::string(c.expected));
    CHECK_MESSAGE(contains(d.sentence, c.expected), d.sentence);
    CHECK(d.mistake == Mistake::slope);
  }
  CHECK(std::size(kSlopes) >= 50);
}

TEST_CASE("slopes: what is wrong in the rows of a Jacobian is named") {
  for (const RowCase& c : kRows) {
    Diagnosis d = diagnose(
        [&](const std::vector<Var>& in) {
          Var y = c.right(in);
          return record(c.op, in, y.value(), [=, x = in](const Tensor& dy, Grads& dx) {
            dx.add(0, c.dx(x[0].value(), y.value(), dy));
            Var w = variable(x[1].value());
            Var again = c.right({Var(x[0].value()), w});
            if (again.requires_grad()) dx.add(1, backward(again, {.seed = dy})[w]);
          });
        },
        {positive_numbers({3, 4}), positive_numbers({3, 4}, 2)});
    INFO(std::string(c.op), ": ", std::string(c.expected));
    CHECK_MESSAGE(contains(d.sentence, c.expected), d.sentence);
    CHECK(d.name == "input0");
    CHECK(d.mistake != Mistake::unknown);
  }
  CHECK(std::size(kRows) + std::size(kSlopes) >= 80);
}

TEST_CASE("slopes: nothing is named where nothing fits, or too little was seen") {
  auto odd = [](double x, double) { return std::cos(3 * x) + 2; };
  for (const SlopeCase& c : kSlopes) {
    if (!std::isfinite(odd(1, 1))) continue;
    Diagnosis d = of_slope(c, odd, positive_numbers({2, 4}));
    INFO(std::string(c.op), ": ", d.sentence);
    CHECK(d.mistake == Mistake::unknown);
  }
  // Of two numbers every factor could be made.
  CHECK(of_slope(kSlopes[0], kSlopes[0].slope, positive_numbers({2})).mistake == Mistake::unknown);
  // Nearly is not named: the slope of a tanh that is 1e-3 wrong.
  CHECK(
      of_slope(
          kSlopes[0], [](double x, double y) { return (1 - y * y) * (1 + 1e-3 * x); }, positive_numbers({8}))
          .mistake == Mistake::unknown);
  // Each element of another kind.
  CHECK(of_slope(
            kSlopes[0], [](double x, double y) { return x < 0.8 ? y : 1 - y; }, positive_numbers({8}))
            .mistake == Mistake::unknown);
}
