// One attention step with numbers small enough for paper, forward and backward.
//
// A decoder state and four annotations of three units each. Dot-product scores (Luong et al. 2015), softmax,
// weighted sum. What it shows: what every quantity is, how the gradient of the context travels back through the
// weights into the scores, the state and the annotations; that float and double agree; and that the softmax
// written down as the formula says fails on scores as large as these.
//
//   build/examples/02_worked_attention
//   build/examples/02_worked_attention --svg docs/worked-attention.svg      the forward pass as five heat maps

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <gradus/autograd.h>
#include <gradus/ops.h>
#include <gradus/print.h>

#include "worked_heat_maps.h"

using namespace gradus;

namespace {

const std::vector<double> kState = {5, 1, 20};
const std::vector<double> kAnnotations = {3,  12, 45,    //
                                          59, 2,  5,     //
                                          1,  43, 5,     //
                                          4,  3,  45.3};
constexpr int64_t S = 4, H = 3;  // annotations, units

struct Result {
  Tensor scores, weights, context;
  Tensor d_context, d_weights, d_scores, d_state, d_annotations;
};

// The step composed of elementary operations, and the gradients of everything with respect to loss = sum of the
// context.
Result attend(DType dtype) {
  Var q = variable(Tensor::from({H}, kState, dtype), "state");
  Var h = variable(Tensor::from({S, H}, kAnnotations, dtype), "annotations");

  Var scores = sum(h * q, {.axes = {1}});                                      // e_s = q . h_s         [S]
  Var weights = softmax(scores);                                               // a_s = softmax_s(e)    [S]
  Var context = sum(reshape(weights, {S, 1}) * h, {.axes = {0}});              // c = sum_s a_s h_s     [H]
  Gradients d = backward(sum(context), {.keep = {scores, weights, context}});  // d loss / d c = (1, 1, 1)

  return {scores.value(), weights.value(), context.value(), d[context], d[weights], d[scores], d[q], d[h]};
}

// The same by the fused op, one node for the whole step: sources are [S, batch, H], queries [batch, H].
double fused_differs_by(const Result& expected) {
  Var q = variable(Tensor::from({1, H}, kState, DType::f64));
  Var h = variable(Tensor::from({S, 1, H}, kAnnotations, DType::f64));
  AttentionStep step = multiplicative_attention(q, h, h);
  Gradients d = backward(sum(step.context));
  double worst = max_abs_difference(step.context.value().reshape({H}), expected.context);
  worst = worse(worst, max_abs_difference(step.weights.reshape({S}), expected.weights));
  worst = worse(worst, max_abs_difference(d[q].reshape({H}), expected.d_state));
  return worse(worst, max_abs_difference(d[h].reshape({S, H}), expected.d_annotations));
}

// Float beside double, one line an entry.
void compare(const std::string& name, const Tensor& f, const Tensor& d) {
  auto index = [&](int64_t i) {
    return d.dims() == 2 ? fmt::format("[{},{}]", i / d.size(1), i % d.size(1)) : fmt::format("[{}]", i);
  };
  auto number = [](double v) {
    return v != 0 && std::abs(v) < 1e-6 ? fmt::format("{:.7e}", v) : fmt::format("{:.7f}", v);
  };
  for (int64_t i = 0; i < d.numel(); ++i)
    fmt::print("  {:<22} {:>15} {:>17} {:>11.1e}\n", name + index(i), number(f.at(i)), number(d.at(i)),
               f.at(i) - d.at(i));
}

void softmax_as_written(DType dtype) {
  Var scores = Tensor::from({S}, {927, 397, 148, 929}, dtype);
  Var raised = exp(scores);
  Var weights = raised / sum(raised);
  fmt::print("  exp(scores)              {}\n", to_string(raised.value(), {.precision = 2}));
  fmt::print("  exp(scores) / their sum  {}\n", to_string(weights.value(), {.precision = 2}));
}

// The forward pass in float: the softmax needs no more.
int write_heat_maps(const std::string& path) {
  Result f = attend(DType::f32);
  std::ofstream out(path, std::ios::binary);
  out << worked::heat_maps(Tensor::from({H}, kState), Tensor::from({S, H}, kAnnotations), f.scores, f.weights,
                           f.context);
  if (out.flush()) return 0;
  fmt::print(stderr, "02_worked_attention: {} cannot be written\n", path);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--svg") return write_heat_maps(argv[2]);
  if (argc > 1) {
    fmt::print(stderr, "usage: 02_worked_attention [--svg FILE]\n");
    return 2;
  }
  Result f = attend(DType::f32), d = attend(DType::f64);

  fmt::print("Decoder state q  {}\n\nAnnotations h_s, one a line\n{}\n\n",
             to_string(Tensor::from({H}, kState, DType::f64), {.precision = 1}),
             to_string(Tensor::from({S, H}, kAnnotations, DType::f64), {.precision = 1}));

  fmt::print("Forward\n\n");
  fmt::print("  {:>1} {:>20} {:>18} {:>30}\n", "s", "score q . h_s", "weight a_s", "a_s h_s");
  for (int64_t s = 0; s < S; ++s) {
    double a = d.weights.at(s);
    fmt::print("  {:>1} {:>20.1f} {:>18.9f}   [{:>8.4f} {:>8.4f} {:>8.4f}]\n", s, d.scores.at(s), a,
               a * kAnnotations[H * s], a * kAnnotations[H * s + 1], a * kAnnotations[H * s + 2]);
  }
  fmt::print("  {:>42} [{:>8.4f} {:>8.4f} {:>8.4f}]\n\n", "context c, their sum  ", d.context.at(0),
             d.context.at(1), d.context.at(2));

  fmt::print("Backward, for loss = c_0 + c_1 + c_2, so that g = d loss / d c = (1, 1, 1)\n\n");
  fmt::print(
      "  the gradient of weight a_s is g . h_s; that of score e_s compares the annotation with the context,\n"
      "  delta_s = a_s g . (h_s - c): it rises where attending more to h_s raises the loss above what the\n"
      "  context already gives. The deltas sum to 0, and an unattended annotation (a_s = 0) has none.\n\n");
  fmt::print("  {:>1} {:>16} {:>18} {:>20} {:>16}\n", "s", "d weight", "g . (h_s - c)", "delta_s by hand",
             "d score");
  double c_sum = d.context.at(0) + d.context.at(1) + d.context.at(2), sum_of_deltas = 0;
  for (int64_t s = 0; s < S; ++s) {
    double h_sum = kAnnotations[H * s] + kAnnotations[H * s + 1] + kAnnotations[H * s + 2];
    fmt::print("  {:>1} {:>16.6f} {:>18.6f} {:>20.9f} {:>16.9f}\n", s, d.d_weights.at(s), h_sum - c_sum,
               d.weights.at(s) * (h_sum - c_sum) + 0.0, d.d_scores.at(s));  // + 0.0: no "-0"
    sum_of_deltas += d.d_scores.at(s);
  }
  fmt::print("  sum of the deltas: {:.1e}\n\n", sum_of_deltas);
  fmt::print(
      "  the state gets sum_s delta_s h_s; annotation s gets a_s g (by the sum) and delta_s q (by its "
      "score)\n\n");
  fmt::print("d state\n{}\n\nd annotations\n{}\n\n", to_string(d.d_state, {.precision = 6}),
             to_string(d.d_annotations, {.precision = 6}));

  fmt::print("Float against double\n\n");
  fmt::print("  {:<22} {:>15} {:>17} {:>11}\n", "", "float", "double", "difference");
  compare("score", f.scores, d.scores);
  compare("weight", f.weights, d.weights);
  compare("context", f.context, d.context);
  compare("d context", f.d_context, d.d_context);
  compare("d weight", f.d_weights, d.d_weights);
  compare("d score", f.d_scores, d.d_scores);
  compare("d state", f.d_state, d.d_state);
  compare("d annotation", f.d_annotations, d.d_annotations);

  fmt::print(
      "\nThe fused attention step differs from the one composed above by at most {:.1e}, gradients "
      "included.\n\n",
      fused_differs_by(d));

  fmt::print(
      "The softmax as its formula is written: e^88.7 is the end of float, e^709.8 that of double.\n\n");
  softmax_as_written(DType::f32);
  fmt::print("\n");
  softmax_as_written(DType::f64);
  fmt::print(
      "\nWhat Gradus does: subtract the largest score first, so that the largest power is e^0 = 1.\n"
      "What helps to find such a thing elsewhere: CheckFinite stops at the first operation that goes "
      "wrong.\n\n");
  try {
    CheckFinite check;
    Var scores = variable(Tensor::from({S}, {927, 397, 148, 929}), "scores");
    Scope scope("attention");
    exp(scores);
  } catch (const Error& error) {
    fmt::print("  {}\n", error.what());
  }
}
