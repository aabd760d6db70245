// An operation of your own, in this file alone: forward, backward, and everything that checks it.
//
// What it shows: `record` is all it takes to make a differentiable operation; GRADUS_OP_CASES registers sample
// inputs, from which one call checks values, gradients, float against double and more; and what a wrong
// backward looks like when it is caught.
//
//   build/examples/03_custom_op

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include <gradus/autograd.h>
#include <gradus/gradcheck.h>
#include <gradus/numeric.h>
#include <gradus/op_case.h>
#include <gradus/ops.h>

namespace mine {

using namespace gradus;

// swish(x) = x s(x), s the logistic function.   x [...] -> y [...]
// dx = dy s(x) (1 + x (1 - s(x)))               Ramachandran et al. 2017, arXiv:1710.05941

namespace reference {
// Composed of operations that exist: slower, several nodes on the tape, and obviously right.
Var swish(const Var& x) { return x * sigmoid(x); }
}  // namespace reference

Var swish(const Var& x) {
  Tensor s = map(x.value(), [](auto v) { return 1 / (1 + std::exp(-v)); });
  Tensor y = zip(x.value(), s, [](auto v, auto q) { return v * q; });
  // The closure captures tensors, and what it captures is what the operation keeps in memory for its backward.
  return record("swish", {x}, y, [x = x.value(), s](const Tensor& dy, Grads& dx) {
    dx.add(0, zip(dy, x, s, [](auto g, auto v, auto q) { return g * q * (1 + v * (1 - q)); }));
  });
}

GRADUS_OP_CASES({"swish",
                 {{2, 5}},
                 [](auto& in) { return swish(in[0]); },
                 [](auto& in) { return reference::swish(in[0]); }},
                {"swish: far from 0",
                 {OpCase::Input({8}, -30, 30)},
                 [](auto& in) { return swish(in[0]); },
                 [](auto& in) { return reference::swish(in[0]); }});

// The mistake that the checks shall find: treats s(x) as a constant, so that half of the product rule is lost.
Var forgetful_swish(const Var& x) {
  Tensor s = map(x.value(), [](auto v) { return 1 / (1 + std::exp(-v)); });
  Tensor y = zip(x.value(), s, [](auto v, auto q) { return v * q; });
  return record("forgetful_swish", {x}, y, [s](const Tensor& dy, Grads& dx) {
    dx.add(0, zip(dy, s, [](auto g, auto q) { return g * q; }));
  });
}

}  // namespace mine

int main() {
  using namespace gradus;
  using mine::forgetful_swish, mine::swish;

  fmt::print("swish(x) = x s(x)\n\n");
  fmt::print("  {:>6} {:>12} {:>14} {:>16} {:>12}\n", "x", "swish(x)", "gradient", "numeric", "difference");
  for (double at : {-4.0, -1.278, -0.5, 0.0, 0.5, 2.0, 4.0}) {
    const double h = 1e-5;
    Var x = variable(Tensor::scalar(at, DType::f64));
    Var y = swish(x);
    double gradient = backward(y)[x].item();
    auto value = [](double v) { return swish(Tensor::scalar(v, DType::f64)).item(); };
    double numeric = (value(at + h) - value(at - h)) / (2 * h);
    fmt::print("  {:>6.3f} {:>12.6f} {:>14.8f} {:>16.8f} {:>12.1e}\n", at, y.item(), gradient, numeric,
               gradient - numeric);
  }

  fmt::print(
      "\nThe registered cases: gradient check of the op and of its reference, one against the other, float\n"
      "against double, inputs as constants, no tape under NoGrad\n\n");
  size_t problems = 0;
  for (const OpCase& c : op_cases()) {
    if (c.name.rfind("swish", 0) != 0) continue;
    std::vector<std::string> failures = check_op_case(c);
    fmt::print("  {:<28} {}\n", c.name, failures.empty() ? "passed" : "FAILED");
    for (const std::string& line : failures) fmt::print("    {}\n", line);
    problems += failures.size();
  }

  fmt::print("\nA backward with a mistake in it, caught\n\n");
  OpCase wrong{"forgetful_swish", {{2, 5}}, [](auto& in) { return forgetful_swish(in[0]); },
                                            [](auto& in) { return mine::reference::swish(in[0]); }};
  for (const std::string& line : check_op_case(wrong)) fmt::print("  {}\n", line);

  fmt::print("\nThe gradient check by itself, on numbers of your choice\n\n");
  Tensor x = Tensor::from({3}, {-1, 0.5, 2}, DType::f64);
  GradcheckReport right = gradcheck([](const std::vector<Var>& in) { return swish(in[0]); }, {x});
  GradcheckReport caught = gradcheck([](const std::vector<Var>& in) { return forgetful_swish(in[0]); }, {x});
  fmt::print("  swish            {}\n  forgetful_swish  {}\n", right.message, caught.message);
  return problems == 0 && right && !caught ? 0 : 1;
}
