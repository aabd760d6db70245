// Counting takes a memory that grows. Joulin and Mikolov 2015, "Inferring algorithmic patterns with
// stack-augmented recurrent nets" (arXiv:1503.01007).
//
// What it shows: strings such as a^n b^n are learnt for n < 20 and asked for up to n = 60. A recurrent network
// counts with its units, as far as they reach. One with stacks can push as it reads a, pop as it reads b, and
// see the bottom, which is the same thing for every n.
//
//   gallery-stack_rnn --model rnn                        gallery-stack_rnn --model stack --language anbncn
//
//   h_t = sigmoid(U x_t + P s_{t-1}[0, 1] + b)           no R h_{t-1}: what is remembered is on the stacks
//   a_t = softmax(3 A h_t)                               push, pop, no-op of each of 10 stacks
//   s_t[0] = a[push] sigmoid(D h_t) + a[pop] s_{t-1}[1]     + a[no-op] s_{t-1}[0]
//   s_t[i] = a[push] s_{t-1}[i-1]   + a[pop] s_{t-1}[i+1]   + a[no-op] s_{t-1}[i]
//   y_t = softmax(V h_t)                                 an empty place of a stack is -1
// The factor 3 is ours: actions that are near one half each smear the stacks, and then nothing is counted.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gradus/nn/embedding.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/recurrent.h>
#include <gradus/ops.h>

#include "gallery.h"

using namespace gradus;

namespace {

constexpr int64_t kSymbols = 3, kUnits = 40, kStacks = 10, kSeen = 2, kActions = 3, kEvery = 50;
constexpr int64_t kTrained = 19, kChoosing = 25, kTested = 60;  // n: 1 to 19, 20 to 25, 1 to 60
constexpr int32_t kNone = -1;
constexpr double kSharpness = 3, kRate = 0.01, kLargest = 15;

const std::vector<std::string> kModels = {"rnn", "lstm", "stack"}, kLanguages = {"anbn", "anb2n", "anbncn"};

struct Strings {
  Tensor symbols, next;  // i32 [T, B]; after the last symbol comes the a of another string
  Tensor known;          // i32 [T, B]: next, where it follows from what was read: from the first b on
};

// Those of n = first .. last, a column each.
Strings strings(const std::string& language, int64_t first, int64_t last) {
  const int64_t bs = language == "anb2n" ? 2 : 1, cs = language == "anbncn" ? 1 : 0;  // times n
  const int64_t B = last - first + 1, T = last * (1 + bs + cs);
  Strings out{Tensor::zeros({T, B}, DType::i32), Tensor({T, B}, DType::i32), Tensor({T, B}, DType::i32)};
  for (int64_t i = 0; i < T * B; ++i) {
    const int64_t t = i / B, n = first + i % B;
    const int64_t end_b = n + bs * n, end = end_b + cs * n;
    auto symbol = [&](int64_t at) { return at < n ? 0 : at < end_b ? 1 : at < end ? 2 : 0; };
    out.symbols.i32()[i] = symbol(t);
    out.next.i32()[i] = t < end ? symbol(t + 1) : kNone;
    out.known.i32()[i] = symbol(t) > 0 ? symbol(t + 1) : kNone;
  }
  return out;
}

struct Stacks {
  nn::Linear seen, act, push;  // P, A, D

  explicit Stacks(Rng& rng)
      : seen(kStacks * kSeen, kUnits, rng),
        act(kUnits, kStacks * kActions, rng),
        push(kUnits, kStacks, rng) {}
  // x [T, B, H] -> h [T, B, H]. `actions` gets those of each step, [B, stacks, 3]. Rounded: the likeliest.
  Var operator()(const Var& x, bool rounded, std::vector<Tensor>* actions) const {
    const int64_t T = x.size(0), B = x.size(1);
    const Var empty(Tensor::full({B, kStacks, 1}, -1, x.dtype()));
    Var s = concat({empty, empty}, 2);  // grows by a place a step; below it all is empty
    std::vector<Var> states;
    for (int64_t t = 0; t < T; ++t) {
      Var h = sigmoid(select(x, 0, t) + seen(reshape(slice(s, 2, 0, kSeen), {B, kStacks * kSeen})));
      Var a = softmax(reshape(kSharpness * act(h), {B, kStacks, kActions}));
      if (rounded) a = likeliest(a.value());
      Var pushed = concat({reshape(sigmoid(push(h)), {B, kStacks, 1}), s}, 2);
      Var popped = concat({slice(s, 2, 1, s.size(2)), empty, empty}, 2), same = concat({s, empty}, 2);
      s = slice(a, 2, 0, 1) * pushed + slice(a, 2, 1, 2) * popped + slice(a, 2, 2, 3) * same;
      states.push_back(h);
      if (actions) actions->push_back(a.value());
    }
    return stack(states, 0);
  }
  static Tensor likeliest(const Tensor& actions) {
    const Tensor best = argmax(actions);
    Tensor out = Tensor::zeros(actions.shape(), actions.dtype());
    for (int64_t i = 0; i < best.numel(); ++i) out.set(i * kActions + best.i32()[i], 1);
    return out;
  }
  void params(nn::ParamVisitor& visit) { visit("seen", seen), visit("act", act), visit("push", push); }
};

struct Model {
  nn::Embedding in;  // U
  nn::Linear out;    // V
  std::optional<Stacks> stacks;
  std::optional<nn::RecurrentStack> units;

  Model(const std::string& kind, Rng& rng) : in(kSymbols, kUnits, rng), out(kUnits, kSymbols, rng) {
    if (kind == "stack")
      stacks.emplace(rng);
    else
      units.emplace("units", kUnits, kUnits, rng,
                    nn::RecurrentOptions{.bidirectional = false, .cell = nn::cell_type(kind)});
  }
  // Symbols i32 [T, B] -> logits [T, B, V] of the next ones.
  Var operator()(const Tensor& symbols, bool rounded = false, std::vector<Tensor>* actions = nullptr) const {
    return out(stacks ? (*stacks)(in(symbols), rounded, actions) : (*units)(in(symbols)).output);
  }
  void params(nn::ParamVisitor& visit) {
    visit("in", in);
    visit("out", out);
    if (stacks) visit("stacks", *stacks);
    if (units) visit("units", *units);
  }
};

// Share of the strings all of whose known symbols are said.
double share_right(const Model& model, const Strings& x, bool rounded = false) {
  NoGrad no_tape;
  const Tensor said = argmax(model(x.symbols, rounded));
  double right = 0;
  for (int64_t b = 0; b < said.size(1); ++b) {
    bool all = true;
    for (int64_t i = b; i < said.numel(); i += said.size(1))
      all = all && (x.known.i32()[i] == kNone || x.known.i32()[i] == said.i32()[i]);
    right += all;
  }
  return right / static_cast<double>(said.size(1));
}

// A line a stack: the likeliest action at each symbol; below, what is said to be next.
std::string picture(const Model& model, const Strings& one) {
  NoGrad no_tape;
  std::vector<Tensor> actions;
  const Tensor said = argmax(model(one.symbols, false, &actions));
  std::string out = "  read    ", next = "  next    ";
  for (int64_t t = 0; t < said.numel(); ++t) {
    out += fmt::format(" {}", "abc"[one.symbols.i32()[t]]);
    next += fmt::format(" {}", one.known.i32()[t] == kNone ? '?' : "abc"[said.i32()[t]]);
  }
  for (int64_t k = 0; k < kStacks && !actions.empty(); ++k) {
    out += fmt::format("\n  stack {:<2}", k + 1);
    for (const Tensor& a : actions) out += fmt::format(" {}", "+-."[argmax(a).i32()[k]]);
  }
  return out + "\n" + next + "\n";
}

void learn(const gallery::Program& program, const std::string& kind, const std::string& language) {
  const int64_t updates = program.quick ? 300 : 800, starts = program.quick ? 2 : 4;
  Rng rng(program.seed);
  const Strings choosing = strings(language, kTrained + 1, kChoosing), test = strings(language, 1, kTested);
  double least = INFINITY;
  std::optional<Model> model;
  nn::StateDict best;
  program.say("start  update     loss   loss at n = {} to {}\n", kTrained + 1, kChoosing);
  for (int64_t start = 1; start <= starts; ++start) {
    model.emplace(kind, rng);
    nn::Adam adam({.lr = kRate});
    for (int64_t update = 1; update <= updates; ++update) {
      adam.set_lr(kRate * static_cast<double>(updates - update + 1) / static_cast<double>(updates));
      const Strings batch =
          strings(language, 1, std::min(kTrained, 3 + update * 20 / updates));  // short ones first
      Var loss = cross_entropy((*model)(batch.symbols), batch.next, {.ignore_index = kNone}).loss;
      Gradients grads = backward(loss);
      nn::clip_grad_value(grads, kLargest);
      adam.step(*model, grads);
      if (update % kEvery != 0) continue;
      NoGrad no_tape;
      const Var logits = (*model)(choosing.symbols);
      const double longer = cross_entropy(logits, choosing.known, {.ignore_index = kNone}).loss.item();
      if (longer < least) least = longer, best = nn::state_dict(*model);
      program.say("{:>5} {:>7} {:>8.4f} {:>8.4f}\n", start, update, loss.item(), longer);
      program.event("learnt",
                    {{"start", start}, {"update", update}, {"loss", loss.item()}, {"longer", longer}});
    }
  }
  nn::load_state_dict(*model, best);
  const double right = share_right(*model, test), rounded = share_right(*model, test, true);
  program.say("\n{:.1f} % of n = 1 to {} right", 100 * right, kTested);
  if (model->stacks) program.say(", {:.1f} with actions that are rounded", 100 * rounded);
  program.say("\n\n{}", picture(*model, strings(language, 8, 8)));
  program.event("result",
                {{"right", right}, {"rounded", rounded}, {"parameters", nn::num_parameters(*model)}});
}

}  // namespace

int main(int argc, char** argv) {
  gallery::Program program("gallery-stack_rnn",
                           "Counting with and without stacks (Joulin and Mikolov 2015).");
  std::string model = "stack", language = "anbn";
  program.option("--model", model, "What reads the strings").one_of(kModels).show_default();
  program.option("--language", language, "Of the strings").one_of(kLanguages).show_default();
  return program.run(argc, argv, [&] { learn(program, model, language); });
}
