// Which character comes next? Counts of n-grams, recurrent networks, and a small GPT (Radford et al. 2018), a
// Transformer (Vaswani et al. 2017) whose attention looks back only.
//
// What it shows: all say p(next character | those before), so that one loop trains them, one number measures
// them, and one function writes with them. Counts know most at first; networks also learn what is further back.
//
//   gallery-characters --models ngram,gpt --text book.txt
//
//   ngram   p(c | h) = (n(h c) + d(h) p(c | h')) / (n(h) + d(h))      Witten and Bell 1991; h: the last
//           characters, h': without the first of them, d(h): how many different ones came after h
//   others  p = softmax(W y_t + b), y_t the state, or the last layer's output, at t

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include <common/progress.h>
#include <common/utf8.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/positions.h>
#include <gradus/nn/recurrent.h>
#include <gradus/nn/transformer.h>
#include <gradus/ops.h>
#include <translator/corpus/corpus.h>
#include <translator/model/files.h>

#include "gallery.h"

using namespace gradus;

namespace {

constexpr int64_t kSteps = 64, kBatch = 8, kUnits = 128, kLayers = 2, kHeads = 4;
constexpr int kOrder = 6, kTest = 20, kReports = 12, kLeast = 50000, kMost = 1000000;  // the last: of a text
const nn::TransformerOptions kGpt{.dim_feedforward = 4 * kUnits, .dropout = 0, .norm_first = true};
constexpr double kRate = 0.003, kLargestNorm = 1;  // Adam's, which falls to 0; of a gradient

struct Model {
  virtual ~Model() = default;
  virtual void learn(const Tensor& window, double rate) = 0;  // i32 [T + 1, B]
  virtual Var logits(const Tensor& ids) const = 0;  // i32 [T, B] -> [T, B, V], of what comes after each
};

struct NGrams : Model {
  int64_t V;
  std::unordered_map<std::string, std::map<int32_t, double>> seen;  // n(h c) by h
  explicit NGrams(int64_t alphabet) : V(alphabet) {}
  // f(i, h) for every character i of ids, h the last 0, 1, ..., n - 1 up to it.
  static void contexts(const Tensor& ids, auto&& f) {
    for (int64_t i = 0, B = ids.size(1); i < ids.numel(); ++i) {
      std::string h;
      for (int64_t k = i; f(i, h), k >= 0 && std::ssize(h) < kOrder - 1; k -= B)
        h.insert(h.begin(), static_cast<char>(ids.i32()[k]));
    }
  }
  void learn(const Tensor& window, double) override {
    const int32_t* next = window.i32() + window.size(1);
    contexts(window.rows(0, window.size(0) - 1), [&](int64_t i, const auto& h) { ++seen[h][next[i]]; });
  }
  Var logits(const Tensor& ids) const override {
    Tensor out = Tensor::full({ids.size(0), ids.size(1), V}, 1 / static_cast<double>(V));
    contexts(ids, [&](int64_t i, const auto& h) {
      auto after = seen.find(h);
      if (after == seen.end()) return;
      float *p = out.f32() + i * V, d = static_cast<float>(after->second.size()), all = d;
      for (auto [c, n] : after->second) all += static_cast<float>(n);
      for (int64_t c = 0; c < V; ++c) p[c] *= d / all;
      for (auto [c, n] : after->second) p[c] += static_cast<float>(n) / all;
    });
    return log(out);
  }
};

struct Network : Model {
  nn::Embedding embed;
  nn::Linear answer;
  std::optional<nn::RecurrentStack> memory;  // or positions and layers
  nn::SinusoidalPositions positions{kUnits};
  std::optional<nn::TransformerEncoder> layers;
  nn::Adam adam;

  Network(const std::string& kind, int64_t V, Rng& rng) : embed(V, kUnits, rng), answer(kUnits, V, rng) {
    if (kind == "gpt")
      layers.emplace(kLayers, kUnits, kHeads, rng, kGpt);
    else
      memory.emplace("memory", kUnits, kUnits, rng, nn::RecurrentOptions{.cell = nn::cell_type(kind)});
  }
  Var logits(const Tensor& ids) const override {
    Var x = embed(ids);
    return answer(memory ? (*memory)(x).output : (*layers)(positions(x), {.causal = true}));
  }
  void learn(const Tensor& window, double rate) override {
    const Tensor read = window.rows(0, kSteps), next = window.rows(1, kSteps + 1);
    Gradients grads = backward(cross_entropy(logits(read), next).loss);
    adam.set_lr(rate);
    adam.step(*this, grads, nn::clip_factor(nn::grad_norm(grads), kLargestNorm));
  }
  void params(nn::ParamVisitor& visit) {
    visit("embed", embed), visit("memory", memory), visit("layers", layers), visit("answer", answer);
  }
};

struct Text {
  std::string alphabet;  // the bytes that occur
  Tensor ids;            // i32 [L, B] of places in it: B parts of the text side by side, L characters each

  explicit Text(const std::string& text) : ids({std::ssize(text) / kBatch, kBatch}, DType::i32) {
    if (std::ssize(text) < kLeast)
      throw std::runtime_error(fmt::format("a text takes {} characters: {}", kLeast, text.size()));
    for (int c = 0; c < 256; ++c)
      if (text.find(static_cast<char>(c)) != text.npos) alphabet += static_cast<char>(c);
    for (int64_t i = 0, L = ids.size(0); i < ids.numel(); ++i)
      ids.i32()[i] = static_cast<int32_t>(alphabet.find(text[i % kBatch * L + i / kBatch]));
  }
  Tensor window(int64_t i) const { return ids.rows(i * kSteps, (i + 1) * kSteps + 1); }
  // The first column, on one line.
  std::string shown(const Tensor& some) const {
    std::string out;
    for (int64_t t = 0; t < some.size(0); ++t) out += alphabet[some.row(t).i32()[0]];
    std::ranges::replace(out, '\n', '/');
    return translator::utf8::printable(out);
  }
};

// -log p of the characters of a window but the first: [B, T].
Tensor surprise(const Model& model, const Tensor& window) {
  NoGrad no_tape;
  const Tensor read = window.rows(0, kSteps), next = window.rows(1, kSteps + 1);
  Var loss = cross_entropy(model.logits(read), next, {.reduction = Reduction::none}).loss;
  return transpose(loss, 0, 1).value();
}

// A window of characters that are drawn from the model, one after the other behind the alphabet's first.
Tensor write(const Model& model, Rng& rng) {
  NoGrad no_tape;
  Tensor ids = Tensor::zeros({kSteps, 1}, DType::i32);
  for (int64_t t = 1; t < kSteps; ++t) {
    const Tensor p = softmax(model.logits(ids.rows(0, t))).value().row(t - 1);
    int32_t& next = ids.i32()[t];
    for (double u = rng.uniform(); (u -= p.at(next)) > 0 && next + 1 < p.numel();) ++next;
  }
  return ids;
}

void learn(const gallery::Program& program, const std::vector<std::string>& names, const Text& text) {
  Rng rng(program.seed), drawn = rng.split(1);
  int64_t V = std::ssize(text.alphabet), train = (text.ids.size(0) - 1) / kSteps - kTest, done = 0;
  std::vector<std::pair<std::string, std::unique_ptr<Model>>> all;
  program.say("Bits a character of text not seen:\n\n  learned");
  for (const std::string& name : names) {
    all.emplace_back(name, name == "ngram" ? static_cast<Model*>(new NGrams(V)) : new Network(name, V, rng));
    program.say(" {:>7}", name);
  }
  gallery::ordered_json nats, bits;
  for (int report = 1; report <= kReports; ++report) {
    for (; done < report * train / kReports; ++done)
      for (auto& [name, model] : all)
        model->learn(text.window(done), kRate * (kReports + 1 - report) / kReports);
    program.say("\n{:>9}", done * kSteps * kBatch);
    for (auto& [name, model] : all) {
      double sum = 0;
      for (int64_t i = 0; i < kTest; ++i) sum += mean(surprise(*model, text.window(train + i))).item();
      nats[name] = sum / kTest, bits[name] = sum / kTest / std::log(2);
      program.say(" {:>7.3f}", sum / kTest / std::log(2));
    }
    program.event("test", {{"characters", done * kSteps * kBatch}, {"bits", bits}});
    if (report != 1 && report != kReports / 3 && report != kReports) continue;
    program.say("\n");
    for (auto& [name, model] : all) program.say("\n{:>9}  {}", name, text.shown(write(*model, drawn)));
  }
  const Tensor unseen = text.window(train), next = unseen.rows(1, kSteps + 1);
  program.say("\n\nNot seen, and how much each character surprises:\n\n{:>11}{}\n", "", text.shown(next));
  for (auto& [name, model] : all)
    program.say("{:>9}  {}\n", name, translator::sparkline(surprise(*model, unseen).row(0).to_vector()));
  program.event("result", {{"bits", bits}, {"nats", nats}});
}

}  // namespace

int main(int argc, char** argv) {
  gallery::Program program("gallery-characters", "Which character comes next: n-grams, RNN, GRU, LSTM, GPT.");
  std::vector<std::string> models = {"ngram", "rnn", "gru", "lstm", "gpt"};
  std::string file, text;
  program.option("--models", models, "That learn").one_of(models).delimiter(',').show_default();
  program.option("--text", file, "To learn from; otherwise sentences of a grammar").type_name("FILE");
  return program.run(argc, argv, [&] {
    for (auto& pair : translator::generate_corpus({program.seed, file.empty() ? 30000 : 0, 0, 0}).train)
      text += pair.source_text + '\n';
    if (!file.empty()) text = translator::read_file(file);
    learn(program, models, Text(text.substr(0, program.quick ? kLeast : kMost)));
  });
}
