#include <fmt/core.h>
#include <gradus/op_case.h>
#include <gradus/random.h>

#include <algorithm>
#include <optional>

#include <common/tell.h>

#include "commands.h"
#include "measure.h"

namespace bench {
namespace {

using gradus::OpCase;
using gradus::OpFunction;
using gradus::Tensor;
using gradus::Var;

// The case with every axis times `factor`; axes of length 1 are there to be stretched and stay.
OpCase enlarged(OpCase c, int64_t factor) {
  for (OpCase::Input& in : c.inputs)
    for (int axis = 0; axis < in.shape.dims(); ++axis)
      if (in.shape[axis] > 1) in.shape.set(axis, in.shape[axis] * factor);
  return c;
}

// The shape that all inputs would broadcast to, roughly what the op has to do.
int64_t extent(const OpCase& c) {
  int64_t size[gradus::Shape::kMaxDims] = {}, product = 1;
  for (const OpCase::Input& in : c.inputs)
    for (int axis = 1; axis <= in.shape.dims(); ++axis)
      size[axis - 1] = std::max(size[axis - 1], in.shape[-axis]);
  for (int64_t n : size) product *= std::max<int64_t>(n, 1);
  return product;
}

constexpr int64_t kLargest = 2'000'000;  // numbers: a case should take milliseconds

// Microseconds, forward and backward: the median of at least five, for up to 20 ms.
double microseconds(const OpFunction& f, const OpCase& c) {
  std::vector<Var> inputs;
  for (const Tensor& t : gradus::sample_inputs(c, gradus::DType::f32))
    inputs.push_back(is_floating(t.dtype()) ? gradus::variable(t) : Var(t));
  gradus::Rng rng(7);
  const Tensor seed = Tensor::uniform(f(inputs).shape(), 0.5, 1.5, rng);
  auto once = [&] {
    Var y = f(inputs);
    if (y.requires_grad()) gradus::backward(y, {.seed = seed});
  };
  for (int i = 0; i < 2; ++i) once();
  std::vector<double> times;
  Stopwatch whole;
  double spent = 0;
  while (times.size() < 5 || (spent < 20 && times.size() < 2000)) {
    Stopwatch one;
    once();
    times.push_back(one.lap() * 1e3);
    spent += whole.lap();
  }
  return median(times);
}

struct Timing {
  int64_t factor;
  double fused;
  std::optional<double> composed;
};

Timing timing_of(const OpCase& c, int64_t factor) {
  Timing t{factor, microseconds(c.op, c), {}};
  if (c.reference) t.composed = microseconds(c.reference, c);
  return t;
}

// Cases that carry ids or masks of their own only work at their registered size: try, and go down.
Timing time_case(const OpCase& c, int64_t factor) {
  const bool given = std::any_of(c.inputs.begin(), c.inputs.end(),
                                 [](const OpCase::Input& in) { return in.given.defined(); });
  for (; factor > 1 && !given; factor /= 2) {
    OpCase large = enlarged(c, factor);
    if (extent(large) > kLargest) continue;
    try {
      return timing_of(large, factor);
    } catch (const gradus::Error&) {
      break;
    }
  }
  return timing_of(c, 1);
}

std::string shapes(const OpCase& c, int64_t factor) {
  std::string out;
  OpCase large = enlarged(c, factor);
  for (const OpCase::Input& in : large.inputs) out += (out.empty() ? "" : " ") + in.shape.str();
  return out;
}

}  // namespace

int ops(const Options& options) {
  int count = 0;
  if (!options.json)
    fmt::print(
        "Forward and backward of every op case in f32, microseconds; sizes as registered, or times `factor`\n"
        "{:<46} {:>6} {:>11} {:>11} {:>7}  {}\n",
        "case", "factor", "op", "composed", "gain", "inputs");
  for (const OpCase& c : gradus::op_cases()) {
    if (c.name.find(options.filter) == std::string::npos) continue;
    Timing t = time_case(c, options.factor);
    ++count;
    if (options.json)
      fmt::print(
          "{{\"framework\": \"gradus\", \"case\": \"{}\", \"factor\": {}, \"inputs\": \"{}\", \"us\": "
          "{:.2f}, \"composed_us\": {}}}\n",
          c.name, t.factor, shapes(c, t.factor), t.fused,
          t.composed ? fmt::format("{:.2f}", *t.composed) : "null");
    else
      fmt::print("{:<46} {:>6} {:>11.1f} {:>11} {:>7}  {}\n", c.name, t.factor, t.fused,
                 t.composed ? fmt::format("{:.1f}", *t.composed) : "-",
                 t.composed ? fmt::format("{:.1f}", *t.composed / t.fused) : "-", shapes(c, t.factor));
  }
  if (count == 0) {
    translator::tell("bench: no op case has \"{}\" in its name\n", options.filter);
    return 1;
  }
  return 0;
}

}  // namespace bench
