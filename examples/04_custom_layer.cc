// A layer of your own: gradient-checked in one line, trained, looked at, saved and loaded.
//
// What it shows: a layer is a struct with parameters, a const call operator, and one function that names its
// parts. That is enough for gradient checks, optimisers, tables and files to work on it, nested or not. The
// layer is the highway layer of Srivastava et al. 2015 (arXiv:1505.00387); the task, two spirals to be told
// apart.
//
//   build/examples/04_custom_layer [FILE.safetensors]

#include <fmt/core.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <gradus/autograd.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/module.h>
#include <gradus/nn/optimizer.h>
#include <gradus/ops.h>

using namespace gradus;

namespace {

constexpr int64_t kPoints = 240, kHidden = 24, kLayers = 2;
constexpr int kSteps = 200;
constexpr double kLearningRate = 0.01;
constexpr uint64_t kSeed = 3;

// g = s(W_g x + b_g),  y = g tanh(W x + b) + (1 - g) x.   [N, n] -> [N, n]
struct Highway {
  nn::Linear gate, candidate;

  Highway(int64_t n, Rng& rng) : gate(n, n, rng), candidate(n, n, rng) {}
  Var operator()(const Var& x) const {
    Var g = sigmoid(gate(x));
    return g * tanh(candidate(x)) + (1 - g) * x;
  }
  void params(nn::ParamVisitor& visit) {
    visit("gate", gate);
    visit("candidate", candidate);
  }
};

// [N, 2] -> logits [N, 2]
struct Classifier {
  nn::Linear input;
  std::vector<Highway> layers;
  nn::Linear output;

  Classifier(int64_t hidden, int64_t depth, Rng& rng) : input(2, hidden, rng), output(hidden, 2, rng) {
    for (int64_t i = 0; i < depth; ++i) layers.emplace_back(hidden, rng);
  }
  Var operator()(const Var& points) const {
    Var x = tanh(input(points));
    for (const Highway& layer : layers) x = layer(x);
    return output(x);
  }
  void params(nn::ParamVisitor& visit) {
    visit("input", input);
    visit("layers", layers);
    visit("output", output);
  }
};

struct Data {
  Tensor points;  // [N, 2]
  Tensor labels;  // i32 [N]
};

// Two arms of one turn and a quarter, half a turn apart.
Data spirals(int64_t n, Rng& rng) {
  std::vector<double> xy;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    int32_t arm = static_cast<int32_t>(i % 2);
    double along = rng.uniform(), radius = 0.25 + 1.75 * along;
    double angle = std::numbers::pi * (2.5 * along + arm);
    xy.push_back(radius * std::cos(angle) + 0.05 * rng.normal());
    xy.push_back(radius * std::sin(angle) + 0.05 * rng.normal());
    labels.push_back(arm);
  }
  return {Tensor::from({n, 2}, xy), Tensor::from_ids({n}, labels)};
}

double accuracy(const Classifier& model, const Data& data) {
  NoGrad no_tape;
  Tensor best = argmax(model(data.points).value());
  int64_t right = 0;
  for (int64_t i = 0; i < best.numel(); ++i) right += best.at(i) == data.labels.at(i);
  return 100.0 * static_cast<double>(right) / static_cast<double>(best.numel());
}

// What the model says about the plane, the data on top of it.
std::string map_of(const Classifier& model, const Data& data) {
  constexpr int64_t rows = 21, columns = 47;
  constexpr double edge = 2.2;
  std::vector<double> grid;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      grid.push_back(edge * (2.0 * static_cast<double>(c) / (columns - 1) - 1));
      grid.push_back(edge * (1 - 2.0 * static_cast<double>(r) / (rows - 1)));
    }
  NoGrad no_tape;
  Tensor best = argmax(model(Tensor::from({rows * columns, 2}, grid)).value());
  std::string cells;
  for (int64_t i = 0; i < best.numel(); ++i) cells += best.at(i) == 0 ? ' ' : '.';
  for (int64_t i = 0; i < data.labels.numel(); ++i) {
    auto c = std::lround((data.points.at(2 * i) / edge + 1) / 2 * (columns - 1));
    auto r = std::lround((1 - data.points.at(2 * i + 1) / edge) / 2 * (rows - 1));
    if (r >= 0 && r < rows && c >= 0 && c < columns)
      cells[static_cast<size_t>(r * columns + c)] = data.labels.at(i) == 0 ? 'o' : 'x';
  }
  std::string text;
  for (size_t r = 0; r < rows; ++r) text += "  " + cells.substr(r * columns, columns) + "\n";
  return text;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string file = argc > 1 ? argv[1] : "gradus_spirals.safetensors";
  Rng rng(kSeed);

  // All parameters and the input, in double, against central differences.
  Highway layer(3, rng);
  GradcheckReport report = nn::gradcheck(layer, {Tensor::normal({4, 3}, 0, 1, rng)});
  fmt::print("The layer:  {}\n", report.message);

  Classifier model(kHidden, kLayers, rng);
  Data train = spirals(kPoints, rng), test = spirals(kPoints, rng);
  GradcheckReport whole = nn::gradcheck(model, {train.points.rows(0, 5)});
  fmt::print("The model:  {}\n\n{}\n", whole.message, nn::summary(model));

  nn::Adam adam({.lr = kLearningRate});
  fmt::print("  {:>5} {:>10} {:>10} {:>12} {:>12}\n", "step", "loss", "|grad|", "train", "held out");
  for (int step = 0; step <= kSteps; ++step) {
    Var loss = cross_entropy(model(train.points), train.labels).loss;
    Gradients grads = backward(loss);
    double norm = nn::clip_grad_norm(grads, 5.0);
    if (step % 25 == 0)
      fmt::print("  {:>5} {:>10.5f} {:>10.5f} {:>10.1f} % {:>10.1f} %\n", step, loss.item(), norm,
                 accuracy(model, train), accuracy(model, test));
    adam.step(model, grads);
  }
  fmt::print("\n{}\n", map_of(model, train));

  // Names and numbers go to a file that other programs can read; another model, begun elsewhere, takes them
  // over.
  nn::save(model, file, {{"task", "two spirals"}});
  Rng other(kSeed + 1);
  Classifier copy(kHidden, kLayers, other);
  double before = max_abs_difference(copy(test.points).value(), model(test.points).value());
  nn::load(copy, file);
  double after = max_abs_difference(copy(test.points).value(), model(test.points).value());
  fmt::print("Saved {} and loaded it into another model: outputs differ by {:.3g} before, {} after.\n",
             file, before, after);
  return report && whole && accuracy(copy, test) > 95 && after == 0 ? 0 : 1;
} catch (const Error& e) {  // the file cannot be written
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
