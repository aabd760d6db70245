// Attention without a recurrence: Raffel and Ellis 2015, "Feed-forward networks with attention can solve some
// long-term memory problems" (arXiv:1512.08756), at the paper's own size.
//
// What it shows: two numbers of a long sequence are marked, and their sum, or product, is wanted. Each step is
// read by itself; only the attention connects them. With a plain mean the two are to be found in an average.
//
//   build/examples/gallery/gallery-feedforward --task multiply --length 100 --pool mean

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <common/progress.h>
#include <gradus/nn/attention/formed.h>
#include <gradus/nn/attention/given.h>
#include <gradus/nn/init.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#include <gradus/ops.h>

#include "gallery.h"

using namespace gradus;

namespace {

constexpr int64_t kUnits = 100, kBatch = 100, kTest = 1000;
constexpr double kRight = 0.04;    // an answer no further off is right
constexpr int64_t kPart = 250000;  // numbers of h that are differentiated at a time: the cache holds them

struct Settings {
  std::string task = "add", pool = "attention";
  int64_t length = 50, vary = 1, epochs = 100, updates = 1000;
  double lr = 0.003;
};

// Additive attention with one unit, whose query is the number 1 and whose v is 1: e_t = tanh(b + w . h_t).
struct StepAttention : nn::FormedAttention {
  nn::Linear key;
  Parameter bias;

  StepAttention(const nn::AttentionSizes& sizes, Rng& rng)
      : key(sizes.annotation_size, 1, rng, {.bias = false}), bias(Tensor::zeros({1, 1}), "bias") {
    nn::init::kaiming_normal_(key.weight, rng);
  }
  nn::ScoreForm form() const override {
    return {nn::ScoreForm::Kind::additive, bias, key.weight, Tensor::ones({1}, bias.value().dtype())};
  }
  void params(nn::ParamVisitor& visit) override { visit("key", key), visit("bias", bias); }
};

// Weights N(0, 1 / in), biases 0.
nn::Linear layer(int64_t in, int64_t out, Rng& rng) {
  nn::Linear made(in, out, rng);
  nn::init::kaiming_normal_(made.weight, rng);
  nn::init::zeros_(made.bias);
  return made;
}

// h_t = f(W_xh x_t + b_xh)                x [T, B, 2] -> h [T, B, D], f the leaky rectifier
// e_t = tanh(W_hc h_t + b_hc)             a = softmax_t(e); with the mean a_t = 1 / T      [B, T]
// y   = f(W_sy f(W_cs c + b_cs) + b_sy)   c = sum_t a_t h_t [B, D] -> y [B, 1]             equations 1 to 3
struct Model {
  nn::Linear read, mix, answer;
  std::unique_ptr<nn::Attention> attention;

  Model(const std::string& pool, Rng& rng)
      : read(layer(2, kUnits, rng)), mix(layer(kUnits, kUnits, rng)), answer(layer(kUnits, 1, rng)) {
    const nn::AttentionSizes sizes{1, kUnits, 1};
    if (pool == "mean")
      attention = std::make_unique<nn::UniformAttention>(sizes, rng);
    else
      attention = std::make_unique<StepAttention>(sizes, rng);
  }
  nn::Attended attend(const Tensor& x) const {
    nn::AttentionMemory memory = attention->prepare(leaky_relu(read(x)), {});
    return attention->step(Tensor::ones({x.size(1), 1}), memory, attention->start(memory));
  }
  Var operator()(const Tensor& x) const { return leaky_relu(answer(leaky_relu(mix(attend(x).context)))); }
  void params(nn::ParamVisitor& visit) {
    visit("read", read);
    visit("attention", attention);
    visit("mix", mix);
    visit("answer", answer);
  }
};

struct Sequences {
  Tensor x, y;  // [T, B, 2]: value, mark; [B, 1]
};

// As the authors' program makes them: the first and the last step marked -1, one of the first ten and one
// before the middle marked 1. Lengths are T to 1.1 T with zeros behind them, or one for all, from T to vary T.
Sequences sequences(const Settings& s, int64_t count, Rng& rng) {
  const bool add = s.task == "add", one_length = s.vary > 1;
  const int64_t steps =
      one_length ? s.length + rng.below((s.vary - 1) * s.length + 1) : (11 * s.length + 9) / 10;
  Sequences out{Tensor::zeros({steps, count, 2}), Tensor::zeros({count, 1})};
  for (int64_t b = 0; b < count; ++b) {
    float* x = out.x.f32() + 2 * b;
    const int64_t next = 2 * count, length = one_length ? steps : s.length + rng.below(steps - s.length);
    const Tensor values = Tensor::uniform({length}, add ? -1 : 0, 1, rng);
    for (int64_t t = 0; t < length; ++t) x[t * next] = values.f32()[t];
    int64_t first = 1 + rng.below(std::min<int64_t>(9, length - 2)), second = 1 + rng.below(length / 2 - 2);
    second += second == first;
    x[first * next + 1] = x[second * next + 1] = 1;
    x[1] = x[(length - 1) * next + 1] = -1;
    const double one = x[first * next], other = x[second * next];
    out.y.set(b, add ? 0.5 + (one + other) / 4 : one * other);
  }
  return out;
}

// f(part) for so many sequences at a time as fit the cache.
void by_parts(const Sequences& all, const std::function<void(const Sequences&)>& f) {
  const int64_t count = all.y.size(0), most = std::max<int64_t>(1, kPart / (all.x.size(0) * kUnits));
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    end = std::min(count, begin + most);
    f({slice(all.x, 1, begin, end).value(), all.y.rows(begin, end)});
  }
}

double share_right(const Model& model, const std::vector<Sequences>& test) {
  NoGrad no_tape;
  int64_t right = 0;
  for (const Sequences& some : test)
    by_parts(some, [&](const Sequences& part) {
      Tensor y = model(part.x).value();
      for (int64_t i = 0; i < y.numel(); ++i) right += std::abs(y.at(i) - part.y.at(i)) < kRight;
    });
  return static_cast<double>(right) / kTest;
}

// The batch's mean squared error, and one step of Adam.
double update(Model& model, nn::Adam& adam, const Sequences& batch) {
  Gradients grads;
  double loss = 0;
  by_parts(batch, [&](const Sequences& part) {
    Var share = mse_loss(model(part.x), part.y, Reduction::sum) / static_cast<double>(kBatch);
    loss += share.item();
    grads.add(backward(share));
  });
  adam.step(model, grads);
  return loss;
}

void draw(const gallery::Program& program, const Model& model, const Sequences& one) {
  NoGrad no_tape;
  const Tensor weights = model.attend(one.x).weights;
  program.say(
      "\nA sequence: {:.3f} is right, {:.3f} answered. Its weights over time, and at marks:\n\n  {}\n\n",
      one.y.item(), model(one.x).item(), translator::sparkline(weights.to_vector(), 76));
  for (int64_t t = 0; t < weights.numel(); ++t)
    if (double mark = one.x.at(2 * t + 1); mark != 0)
      program.say("  step {:>5}  mark {:>2}  value {:>6.3f}  weight {:.4f}, {:.1f} times the mean\n", t, mark,
                  one.x.at(2 * t), weights.at(t), weights.at(t) * static_cast<double>(weights.numel()));
}

void learn(const gallery::Program& program, const Settings& s) {
  Rng rng(program.seed), drawn = rng.split(1);
  Model model(s.pool, rng);
  std::vector<Sequences> test;
  for (int64_t i = 0; i < 50; ++i) test.push_back(sequences(s, kTest / 50, drawn));
  nn::Adam adam({.lr = s.lr});
  const int64_t parameters = nn::num_parameters(model);
  program.say("{} parameters, {} test sequences\n\n  epoch       loss       right\n", parameters, kTest);
  double right = 0;
  int64_t epoch = 0;
  for (; right < 1 && epoch < s.epochs; ++epoch) {
    double loss = 0;
    for (int64_t i = 0; i < s.updates; ++i) loss += update(model, adam, sequences(s, kBatch, drawn));
    loss /= static_cast<double>(s.updates);
    right = share_right(model, test);
    program.say("  {:>5} {:>10.6f} {:>9.1f} %\n", epoch + 1, loss, 100 * right);
    program.event("epoch", {{"epoch", epoch + 1}, {"loss", loss}, {"right", right}});
  }
  draw(program, model, sequences(s, 1, drawn));
  program.event("result", {{"epochs", epoch}, {"right", right}, {"parameters", parameters}});
}

}  // namespace

int main(int argc, char** argv) {
  gallery::Program program("gallery-feedforward",
                           "Attention on long sequences in which two numbers matter (Raffel and Ellis 2015)");
  Settings s;
  program.option("--task", s.task, "Of the two numbers").one_of({"add", "multiply"}).show_default();
  program.option("--pool", s.pool, "All steps become one").one_of({"attention", "mean"}).show_default();
  program.option("--length", s.length, "T: sequences have T to 1.1 T steps").range(10, 20000).show_default();
  program.option("--vary", s.vary, "A batch has one length, from T to so many T").range(2, 1000);
  program.option("--lr", s.lr, "Adam's learning rate").positive(1).show_default();
  program.option("--epochs", s.epochs, "Of 1000 batches of 100, at most").range(1, 10000).show_default();
  return program.run(argc, argv, [&] {
    if (program.quick) s.updates = 100;
    learn(program, s);
  });
}
