#include "exercises.h"

#include <numeric>

#include "exercise_parts.h"

namespace lens {
namespace {

using namespace gradus;

// in[i] receives dy times slopes[i], all of y's shape.
Var with_slopes(const Var& y, const In& in, const std::vector<Var>& slopes) {
  Var other = in[0] * cut(slopes[0]);
  for (size_t i = 1; i < slopes.size(); ++i) other = other + in[i] * cut(slopes[i]);
  return with_gradient_of(y, other);
}

// ---- 1: x, w -> x s(w x) ----

// dw is right; dx is made of x, w, s and s' = s (1 - s).
OpFunction chain(Var (*dx)(const Var& x, const Var& w, const Var& s, const Var& slope)) {
  return [dx](const In& in) {
    Var x = in[0], s = sigmoid(in[1] * x), slope = s * (1.0 - s);
    return with_slopes(x * s, in, {dx(x, in[1], s, slope), x * x * slope});
  };
}

const Exercise kChain{
    "chain-rule",
    [](auto& in) { return in[0] * sigmoid(in[1] * in[0]); },
    {{"one path missing",
      "x is used twice, and only one use has sent its gradient back: add what comes through sigmoid(w x), x "
      "s (1 - s) w.",
      [](auto& in) { return in[0] * sigmoid(in[1] * cut(in[0])); }},
     {"one path missing",
      "x is used twice, and only one use has sent its gradient back: the factor in front gives dy s.",
      [](auto& in) { return cut(in[0]) * sigmoid(in[1] * in[0]); }},
     {"inner derivative missing",
      "The path through sigmoid(w x) lacks the last step: the derivative of w x with respect to x is w.",
      chain([](auto& x, auto&, auto& s, auto& slope) { return s + x * slope; })},
     {"wrong inner derivative",
      "The last step of the path through sigmoid(w x) is the derivative of w x with respect to x. That is w; x "
      "is the one with respect to w.",
      chain([](auto& x, auto&, auto& s, auto& slope) { return s + x * slope * x; })},
     {"outer factor missing",
      "The path through sigmoid(w x) begins with the product in front, which hands dy times its other factor, "
      "x.",
      chain([](auto&, auto& w, auto& s, auto& slope) { return s + slope * w; })},
     {"slope of the sigmoid",
      "The path through sigmoid(w x) has s where its slope belongs: s' = s (1 - s), which the file calls "
      "slope.",
      chain([](auto& x, auto& w, auto& s, auto&) { return s + x * s * w; })},
     {"paths subtracted",
      "Both paths are there, and one is subtracted from the other. What arrives on several paths is added.",
      chain([](auto& x, auto& w, auto& s, auto& slope) { return s - x * slope * w; })}}};

// ---- 2, 3 ----

const Exercise kLinear{
    "linear",
    [](auto& in) { return linear(in[0], in[1]); },
    {{"own factor", "dW is dy times W itself. In a product each factor receives dy times the OTHER one: x.",
      [](auto& in) {
        return with_gradient_of(linear(in[0], in[1]),
                                linear(in[0], cut(in[1])) + sum(in[1] * in[1], {.axes = {1}}) * 0.5);
      }}}};

const Exercise kBias{
    "bias",
    [](auto& in) { return in[0] + in[1]; },
    {{"a factor too many",
      "db has a factor x. An addition hands dy on as it is, to both of its sides; only products have factors.",
      [](auto& in) { return with_gradient_of(in[0] + in[1], in[0] + in[1] * cut(in[0])); }}}};

// x [T, B, D], g [D]; only the first entry along `axis` sends its gradient to g.
Var first_only(const In& in, int axis) {
  Tensor first = Tensor::zeros({in[0].size(0), in[0].size(1), 1}, DType::u8);
  for (int64_t t = 0; t < first.size(0); ++t)
    for (int64_t b = 0; b < first.size(1); ++b) first.set(t * first.size(1) + b, (axis == 0 ? t : b) == 0);
  return where(first, in[0] * in[1], in[0] * cut(in[1]));
}

const Exercise kScale{
    "scale",
    [](auto& in) { return in[0] * in[1]; },
    {{"missing sum over a broadcast axis",
      "g is stretched over the sentences of the batch, and only the first of them sends its gradient back: "
      "sum over all.",
      [](auto& in) { return first_only(in, 1); }},
     {"missing sum over a broadcast axis",
      "g is stretched over the time steps, and only the first of them sends its gradient back: sum over all.",
      [](auto& in) { return first_only(in, 0); }}}};

// ---- 4: a, b -> s(a) tanh(b) ----

// s and t are the outputs of sigmoid and tanh; each slope is made of both and of the inputs.
struct Gate {
  Var a, b, s, t;
};
OpFunction gate(Var (*da)(const Gate&), Var (*db)(const Gate&)) {
  return [da, db](const In& in) {
    Gate g{in[0], in[1], sigmoid(in[0]), tanh(in[1])};
    return with_slopes(g.s * g.t, in, {da(g), db(g)});
  };
}
Var right_a(const Gate& g) { return g.t * g.s * (1.0 - g.s); }
Var right_b(const Gate& g) { return g.s * (1.0 - g.t * g.t); }
Var input_a(const Gate& g) { return g.t * g.a * (1.0 - g.a); }
Var input_b(const Gate& g) { return g.s * (1.0 - g.b * g.b); }

const Exercise kGate{
    "gate",
    [](auto& in) { return sigmoid(in[0]) * tanh(in[1]); },
    {{"input for output",
      "The derivative of sigmoid is s (1 - s) with s the OUTPUT; a (1 - a) takes the input.",
      gate(input_a, right_b)},
     {"input for output", "The derivative of tanh is 1 - t^2 with t the OUTPUT; 1 - b^2 takes the input.",
      gate(right_a, input_b)},
     {"input for output",
      "The derivatives of sigmoid and tanh are written in their OUTPUTS: s (1 - s) and 1 - t^2.",
      gate(input_a, input_b)},
     {"product rule",
      "The other factor is missing: of s t the gate's part is dy t s (1 - s), the candidate's dy s (1 - "
      "t^2).",
      gate([](auto& g) { return g.s * (1.0 - g.s); }, [](auto& g) { return 1.0 - g.t * g.t; })},
     {"product rule",
      "In da the other factor is missing: y = s t, so s receives dy t, and da goes on with s (1 - s).",
      gate([](auto& g) { return g.s * (1.0 - g.s); }, right_b)},
     {"product rule",
      "In db the other factor is missing: y = s t, so t receives dy s, and db goes on with 1 - t^2.",
      gate(right_a, [](auto& g) { return 1.0 - g.t * g.t; })},
     {"own factor",
      "In da s stands where t belongs: in a product each factor receives dy times the OTHER one.",
      gate([](auto& g) { return g.s * g.s * (1.0 - g.s); }, right_b)},
     {"own factor",
      "In db t stands where s belongs: in a product each factor receives dy times the OTHER one.",
      gate(right_a, [](auto& g) { return g.t * (1.0 - g.t * g.t); })},
     {"half a slope", "The slope of sigmoid is s (1 - s), and one of these two factors is missing in da.",
      gate([](auto& g) { return g.t * (1.0 - g.s); }, right_b)},
     {"half a slope", "The slope of sigmoid is s (1 - s), and one of these two factors is missing in da.",
      gate([](auto& g) { return g.t * g.s; }, right_b)},
     {"sign in a slope", "The slope of tanh is 1 - t^2, with a minus: flat where t is near 1 or -1.",
      gate(right_a, [](auto& g) { return g.s * (1.0 + g.t * g.t); })}}};

// ---- 5, 6, 7 ----

OpFunction softmax_by(double (*dx_k)(const SoftmaxRow& row, int64_t k)) {
  return [dx_k](const In& in) { return softmax_with(in[0], dx_k); };
}

const Exercise kSoftmax{
    "softmax",
    [](auto& in) { return softmax(in[0]); },
    {{"no competition",
      "It is dy y. The outputs sum to 1, so raising one lowers the others: dx = y (dy - (dy . y)).",
      [](auto& in) { return with_gradient_of(softmax(in[0]), in[0] * cut(softmax(in[0]))); }},
     {"average added",
      "The average is added to dy: it must be subtracted, since what counts is how much better than the "
      "average a word is.",
      softmax_by([](auto& r, int64_t k) { return r.y[k] * (r.dy[k] + r.mix()); })},
     {"factor y missing", "The bracket dy - (dy . y) is right; the factor y in front of it is missing.",
      softmax_by([](auto& r, int64_t k) { return r.dy[k] - r.mix(); })},
     {"brackets", "The factor y belongs to both terms: y (dy - (dy . y)), not y dy - (dy . y).",
      softmax_by([](auto& r, int64_t k) { return r.y[k] * r.dy[k] - r.mix(); })},
     {"input for output",
      "The average of dy is weighted by the inputs x: its weights are the outputs y, which sum to 1.",
      softmax_by([](auto& r, int64_t k) { return r.y[k] * (r.dy[k] - r.along(r.x)); })},
     {"plain average", "The average of dy counts all alike; its weights are the outputs: sum_i y_i dy_i.",
      softmax_by([](auto& r, int64_t k) {
        return r.y[k] * (r.dy[k] - std::accumulate(r.dy, r.dy + r.n, 0.0) / static_cast<double>(r.n));
      })}}};

// dz of each score, made of its probability and of whether it is the target's, over the number of rows or not.
OpFunction scores_by(double (*dz)(double p, bool wanted), bool mean = true) {
  return [=](const In& in) {
    Tensor p = softmax(in[0]).value(), out(p.shape(), p.dtype());
    for (int64_t i = 0, v = p.size(-1); i < p.numel(); ++i)
      out.set(i, dz(p.at(i), in[1].value().i32()[i / v] == i % v));
    return with_gradient_of(mean_loss(in),
                            sum(in[0] * Var(out)) / (mean ? static_cast<double>(in[1].numel()) : 1));
  };
}

const char* const kAsOfP =
    "-onehot / p is the gradient of the probabilities p. From there it still goes back through softmax "
    "(chapter 5), where almost everything cancels: dz = (p - onehot) / N.";
double of_p(double p, bool wanted) { return wanted ? -1 / p : 0; }

const Exercise kCrossEntropy{
    "cross-entropy",
    [](auto& in) { return mean_loss(in); },
    {{"target missing",
      "It is p / N: the probability of the right word must be lowered by 1, dz = (p - onehot) / N.",
      scores_by([](double p, bool) { return p; })},
     {"right word only",
      "Only the right word's score gets a gradient, p - 1. The others are too likely by their whole p: dz = p "
      "there.",
      scores_by([](double p, bool wanted) { return wanted ? p - 1 : 0; })},
     {"gradient of p", kAsOfP, scores_by(of_p)},
     {"gradient of p", kAsOfP, scores_by(of_p, false)},
     {"1 everywhere",
      "The 1 is subtracted in every place, or p from 1. It is the truth's: 1 for the target, 0 for all other "
      "words.",
      scores_by([](double p, bool) { return p - 1; })},
     {"1 everywhere",
      "The 1 is subtracted in every place, or p from 1. It is the truth's: 1 for the target, 0 for all other "
      "words.",
      scores_by([](double p, bool) { return 1 - p; })}}};

const Exercise kEmbedding{"embedding", [](auto& in) { return embedding(in[0], in[1].value()); }, {}};

// ---- a lab ----

const Exercise kMlp{"mlp", [](auto& in) { return linear(tanh(linear(in[0], in[1])), in[2]); }, {}};

}  // namespace

const std::vector<Exercise>& basic_exercises() {
  static const std::vector<Exercise> all{kChain,   kLinear,       kBias,      kScale, kGate,
                                         kSoftmax, kCrossEntropy, kEmbedding, kMlp};
  return all;
}

const Exercise& exercise(const std::string& name) {
  for (const auto* list : {&basic_exercises(), &sequence_exercises(), &attention_exercises(),
                           &scaled_dot_exercises(), &layer_exercises()})
    for (const Exercise& e : *list)
      if (e.name == name) return e;
  fail("exercise", "there is no exercise of this name: " + name);
}

}  // namespace lens
