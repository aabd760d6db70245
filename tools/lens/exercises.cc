#include "exercises.h"

#include <gradus/numeric.h>
#include <gradus/ops.h>

#include <cmath>

namespace lens {
namespace {

using namespace gradus;
using In = std::vector<Var>;

// y's value with another function's gradients.
Var with_gradient_of(const Var& y, const Var& other) {
  return other - stop_gradient(other) + stop_gradient(y);
}

Var cut(const Var& x) { return stop_gradient(x); }

// ---- 1: x, w -> x s(w x) ----

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
      [](auto& in) {
        Var s = sigmoid(in[1] * cut(in[0]));
        Var inner =
            cut(in[0] * sigmoid(in[1] * in[0]) * (1.0 - sigmoid(in[1] * in[0]))) * (in[0] - cut(in[0]));
        return with_gradient_of(in[0] * s, in[0] * s + inner);
      }}}};

// ---- 2, 3 ----

const Exercise kLinear{"linear", [](auto& in) { return linear(in[0], in[1]); }, {}};
const Exercise kBias{"bias", [](auto& in) { return in[0] + in[1]; }, {}};

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

// The derivative written in the input where the output belongs: a (1 - a), 1 - b^2.
Var gate(const In& in, bool wrong_a, bool wrong_b) {
  Var a = in[0], b = in[1], s = sigmoid(a), t = tanh(b), y = s * t;
  Var da = cut(wrong_a ? t * a * (1.0 - a) : t * s * (1.0 - s)),
      db = cut(wrong_b ? s * (1.0 - b * b) : s * (1.0 - t * t));
  return with_gradient_of(y, a * da + b * db);
}

const Exercise kGate{
    "gate",
    [](auto& in) { return sigmoid(in[0]) * tanh(in[1]); },
    {{"input for output",
      "The derivative of sigmoid is s (1 - s) with s the OUTPUT; a (1 - a) takes the input.",
      [](auto& in) { return gate(in, true, false); }},
     {"input for output", "The derivative of tanh is 1 - t^2 with t the OUTPUT; 1 - b^2 takes the input.",
      [](auto& in) { return gate(in, false, true); }},
     {"input for output",
      "The derivatives of sigmoid and tanh are written in their OUTPUTS: s (1 - s) and 1 - t^2.",
      [](auto& in) { return gate(in, true, true); }},
     {"product rule",
      "The other factor is missing: of s t the gate's part is dy t s (1 - s), the candidate's dy s (1 - "
      "t^2).",
      [](auto& in) {
        return with_gradient_of(sigmoid(in[0]) * tanh(in[1]), sigmoid(in[0]) + tanh(in[1]));
      }}}};

// ---- 5, 6, 7 ----

const Exercise kSoftmax{
    "softmax",
    [](auto& in) { return softmax(in[0]); },
    {{"no competition",
      "It is dy y. The outputs sum to 1, so raising one lowers the others: dx = y (dy - (dy . y)).",
      [](auto& in) { return with_gradient_of(softmax(in[0]), in[0] * cut(softmax(in[0]))); }}}};

Var mean_loss(const In& in, CrossEntropyOptions options = {}) {
  return cross_entropy(in[0], in[1].value(), options).loss;
}

const Exercise kCrossEntropy{
    "cross-entropy",
    [](auto& in) { return mean_loss(in); },
    {{"target missing",
      "It is p / B: the probability of the right word must be lowered by 1, dz = (p - onehot) / B.",
      [](auto& in) {
        double n = static_cast<double>(in[1].numel());
        return with_gradient_of(mean_loss(in), sum(in[0] * cut(softmax(in[0]))) / n);
      }}}};

const Exercise kEmbedding{"embedding", [](auto& in) { return embedding(in[0], in[1].value()); }, {}};

// ---- 8: z, n [T, H], h0 [H] -> h [T, H], h_t = (1 - z_t) n_t + z_t h_(t-1) ----

Var carried(const In& in, bool connected, bool forget_gate = false) {
  std::vector<Var> states;
  Var h = in[2];
  for (int64_t t = 0; t < in[0].size(0); ++t) {
    Var z = select(in[0], 0, t), before = connected || t == 0 ? h : cut(h);
    h = (1.0 - z) * select(in[1], 0, t) +
        (forget_gate ? with_gradient_of(z * before, cut(z * before) + before + (z - cut(z)) * cut(before))
                     : z * before);
    states.push_back(h);
  }
  return stack(states, 0);
}

const Exercise kCarry{
    "carry",
    [](auto& in) { return carried(in, true); },
    {{"not carried back",
      "Each step sees only its own dy. h_t is also what step t+1 starts from: the gradient must be carried "
      "from step to "
      "step, dh = dy_t + z_(t+1) dh, down to h0.",
      [](auto& in) { return carried(in, false); }},
     {"gate forgotten",
      "The state's gradient passes each step undiminished: it must be multiplied by the gate, z_t.",
      [](auto& in) { return carried(in, true, true); }}}};

// ---- 11: table [V, V] (row: logits after a word), targets i32 [T], 0 = padding, 1 = begin -> mean loss ----

Tensor inputs_for(const Tensor& targets, int64_t by) {
  int64_t n = targets.numel();
  Tensor out(targets.shape(), DType::i32);
  for (int64_t t = 0; t < n; ++t) out.i32()[t] = t - by < 0 ? 1 : t - by >= n ? 0 : targets.i32()[t - by];
  return out;
}

Var forced(const In& in, int64_t by, bool skip_padding = true) {
  const Tensor& targets = in[1].value();
  Var logits = embedding(in[0], inputs_for(targets, by));
  return cross_entropy(logits, targets, {.ignore_index = skip_padding ? 0 : -100}).loss;
}

const Exercise kSequenceLoss{
    "sequence-loss",
    [](auto& in) { return forced(in, 1); },
    {{"sees the answer",
      "The decoder is given the word it must say: its loss falls to nothing in training, and it says "
      "nonsense when it "
      "translates. The input of step t is the word BEFORE, target t-1, and BOS at the start.",
      [](auto& in) { return forced(in, 0); }},
     {"sees the future", "The decoder is given target t+1: shift the targets the other way.",
      [](auto& in) { return forced(in, -1); }},
     {"two steps back", "The decoder is given target t-2: shift by one only.",
      [](auto& in) { return forced(in, 2); }},
     {"counts padding", "Padding counts in the loss: the mean is over the real words only.",
      [](auto& in) { return forced(in, 1, false); }}}};

// ---- labs ----

const Exercise kPaddedLoss{
    "padded-loss",
    [](auto& in) { return mean_loss(in, {.ignore_index = 0}); },
    {{"divides by padding",
      "The sum over the real words is divided by all places, padding included: long padding makes "
      "the loss small. Divide by the number of real words.",
      [](auto& in) {
        return mean_loss(in, {.ignore_index = 0, .reduction = Reduction::sum}) /
               static_cast<double>(in[1].numel());
      }},
     {"counts padding", "Padding counts in the loss: the mean is over the real words only.",
      [](auto& in) { return mean_loss(in); }}}};

const Exercise kShared{"shared-over-time", [](auto& in) { return tanh(in[0] * in[1]); }, {}};

// x [T, B, H], lengths i32 [B]: h_t = tanh(x_t) + h_(t+1) / 2 from the end; padded steps carry the state
// over.
Var from_the_end(const In& in, bool look_at_lengths) {
  const Tensor& lengths = in[1].value();
  int64_t T = in[0].size(0), B = in[0].size(1), H = in[0].size(2);
  Var h = Tensor::zeros({B, H}, in[0].dtype());
  std::vector<Var> states(static_cast<size_t>(T));
  for (int64_t t = T - 1; t >= 0; --t) {
    Tensor real = Tensor::ones({B, 1}, DType::u8);
    for (int64_t b = 0; b < B; ++b) real.set(b, !look_at_lengths || t < lengths.i32()[b]);
    h = where(real, tanh(select(in[0], 0, t)) + h * 0.5, h);
    states[static_cast<size_t>(t)] = h;
  }
  return stack(states, 0);
}

const Exercise kReverse{
    "reverse-states",
    [](auto& in) { return from_the_end(in, true); },
    {{"starts on padding",
      "The backward direction reads the padding before the sentence: padded steps must carry the state over.",
      [](auto& in) { return from_the_end(in, false); }}}};

const Exercise kMlp{"mlp", [](auto& in) { return linear(tanh(linear(in[0], in[1])), in[2]); }, {}};

}  // namespace

const std::vector<Exercise>& basic_exercises() {
  static const std::vector<Exercise> all{kChain,        kLinear,       kBias,      kScale, kGate,
                                         kSoftmax,      kCrossEntropy, kEmbedding, kCarry, kShared,
                                         kSequenceLoss, kPaddedLoss,   kReverse,   kMlp};
  return all;
}

const Exercise& exercise(const std::string& name) {
  for (const auto* list : {&basic_exercises(), &attention_exercises()})
    for (const Exercise& e : *list)
      if (e.name == name) return e;
  fail("exercise", "there is no exercise of this name: " + name);
}

}  // namespace lens
