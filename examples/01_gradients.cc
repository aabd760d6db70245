// Gradients of a few lines of arithmetic.
//
// What it shows: an expression leaves a tape behind; `backward` walks it from the newest line to the oldest;
// the gradient of a value that is used twice is the sum of two contributions; and how to see that it is all
// true, by moving each input a little and looking at the result.
//
//   build/examples/01_gradients

#include <fmt/core.h>

#include <string>
#include <vector>

#include <gradus/autograd.h>
#include <gradus/gradcheck.h>
#include <gradus/ops.h>
#include <gradus/trace.h>

using namespace gradus;

namespace {

// The arithmetic: a neuron with weight w and bias b, whose output is multiplied by its input; how far that is
// from 1, and a small price for a large weight.
struct Lines {
  Var u, y, s, miss, loss;
};

Lines arithmetic(const Var& x, const Var& w, const Var& b) {
  Var u = w * x + b;
  Var y = tanh(u);
  Var s = y * x;  // x for the second time
  Var miss = s - 1;
  Var loss = miss * miss + 0.1 * (w * w);
  return {u, y, s, miss, loss};
}

Var number(double value, const std::string& name) {
  return variable(Tensor::scalar(value, DType::f64), name);
}

}  // namespace

int main() {
  const std::vector<std::string> names = {"x", "w", "b"};
  const std::vector<double> values = {1.5, 0.8, -0.3};

  Var x = number(values[0], names[0]), w = number(values[1], names[1]), b = number(values[2], names[2]);
  Lines r = arithmetic(x, w, b);

  fmt::print("u    = w x + b          {:>9.6f}\n", r.u.item());
  fmt::print("y    = tanh(u)          {:>9.6f}\n", r.y.item());
  fmt::print("s    = y x              {:>9.6f}\n", r.s.item());
  fmt::print("miss = s - 1            {:>9.6f}\n", r.miss.item());
  fmt::print("loss = miss^2 + 0.1 w^2 {:>9.6f}\n\n", r.loss.item());

  fmt::print("The tape: one line for each operation, oldest first. Backward reads it from below.\n\n{}\n",
             tape(r.loss));

  // Gradients of the inputs come by themselves, those of values in between where they are asked for.
  Trace trace;
  Gradients grads = backward(r.loss, {.keep = {r.u, r.y, r.s, r.miss}, .trace = &trace});

  fmt::print("Gradients of the values in between\n\n");
  fmt::print("  d loss / d miss = 2 miss         {:>10.6f}\n", grads[r.miss].item());
  fmt::print("  d loss / d s    = d miss         {:>10.6f}\n", grads[r.s].item());
  fmt::print("  d loss / d y    = x d s          {:>10.6f}\n", grads[r.y].item());
  fmt::print("  d loss / d u    = (1 - y^2) d y  {:>10.6f}\n\n", grads[r.u].item());

  fmt::print("x is used twice, so its gradient is a sum\n\n");
  double total = 0;
  for (const Trace::Edge& edge : trace.edges) {
    if (edge.from != x.node()->order) continue;
    std::string user = edge.to == r.s.node()->order ? "s = y x" : "u = w x + b";
    fmt::print("  through {:<12} {:>10.6f}\n", user, edge.contribution.item());
    total += edge.contribution.item();
  }
  fmt::print("  {:<20} {:>10.6f}\n\n", "sum", total);

  fmt::print("Gradients of the inputs, and what moving each by +-0.00001 does to the loss\n\n");
  fmt::print("  {:<6} {:>10} {:>16} {:>16} {:>12}\n", "input", "value", "gradient", "numeric", "difference");
  const std::vector<Var> inputs = {x, w, b};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double h = 1e-5;
    auto loss_at = [&](double value) {
      NoGrad no_tape;
      std::vector<Var> in = inputs;
      in[i] = Tensor::scalar(value, DType::f64);
      return arithmetic(in[0], in[1], in[2]).loss.item();
    };
    double numeric = (loss_at(values[i] + h) - loss_at(values[i] - h)) / (2 * h);
    double gradient = grads[inputs[i]].item();
    fmt::print("  {:<6} {:>10.6f} {:>16.10f} {:>16.10f} {:>12.1e}\n", names[i], values[i], gradient, numeric,
               gradient - numeric);
  }

  // The same in one call, for any function of tensors.
  GradcheckReport report =
      gradcheck([](const std::vector<Var>& in) { return arithmetic(in[0], in[1], in[2]).loss; },
                {x.value(), w.value(), b.value()});
  fmt::print("\n{}\n", report.message);
  return report ? 0 : 1;
}
