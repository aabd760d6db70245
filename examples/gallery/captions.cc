// Sentences about pictures, and where the gaze rests while a word is said (Xu et al. 2015, arXiv:1502.03044).
//
// What it shows: attention over the patches of a picture, learned from sentences alone, looks at what is named.
// Soft attention takes a mean of patches, hard attention draws one and learns by REINFORCE; in "uniform", the
// plain mean, it gets lost what belongs together.
//
//   gallery-captions --attention hard
//
//   a_i = tanh(W x_i + position_i), h_0 = mean_i a_i, z_t = attention(h_t-1; a)
//   h_t = GRU([E y_t-1 ; z_t], h_t-1), p(y_t) = softmax(L [E y_t-1 ; h_t ; z_t])
//   loss = -log p(y), with hard attention's term; doubly stochastic: + sum_i (1 - sum_t alpha_ti)^2

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <common/terminal.h>
#include <gradus/nn/attention/guided.h>
#include <gradus/nn/attention/hard.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/gru.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#include <gradus/ops.h>

#include "gallery.h"

using namespace gradus;

namespace {

constexpr int64_t kUnits = 32, kBatch = 32, kTest = 1000, kTests = 20;
constexpr int kGrid = 4, kPatches = kGrid * kGrid, kSide = 8, kPixels = 3 * kSide * kSide;
constexpr double kRate = 0.003, kClip = 5;

const std::vector<std::string> kWords = {"red",      "green", "blue",  "yellow", "circle", "square",
                                         "triangle", "cross", "above", "beside", "a"};
const std::vector<std::string> kForms = {"●", "■", "▲", "✚"};
constexpr int kKinds = 4, kShape = 4, kRelation = 8, kA = 10, kSaid = 7;  // in kWords; words of a sentence
const double kColours[kKinds][3] = {{0.9, 0.2, 0.2}, {0.2, 0.7, 0.3}, {0.3, 0.4, 0.9}, {0.9, 0.8, 0.2}};

struct Batch {
  Tensor patches, words, cells;  // f32 [patches, B, pixels]; i32 [kSaid, B]; i32 [2, B], where the things are
};

// Red, green and blue of a patch: a form of one colour, of some brightness and not always in the middle.
void paint(float* pixels, int colour, int shape, Rng& rng) {
  const double light = rng.uniform(0.6, 1), left = rng.uniform(2.5, 4.5), top = rng.uniform(2.5, 4.5);
  for (int i = 0; i < kSide * kSide; ++i) {
    const double x = std::abs(i % kSide - left), y = i / kSide - top, far = std::fmax(x, std::abs(y));
    const bool inside[] = {x * x + y * y < 7, true, x < (y + 2.6) / 2, std::fmin(x, std::abs(y)) < 0.8};
    for (int c = 0; c < 3 && far < 2.6 && inside[shape]; ++c)
      pixels[3 * i + c] = static_cast<float>(light * kColours[colour][c]);
  }
}

// Two things on a grid, in one row or one column: "a red circle above a blue square".
Batch scenes(int64_t B, Rng& rng) {
  auto below = [&](int64_t n) { return static_cast<int>(rng.below(n)); };
  Batch out{Tensor::zeros({kPatches, B, kPixels}), Tensor({kSaid, B}, DType::i32),
            Tensor({2, B}, DType::i32)};
  for (int64_t b = 0; b < B; ++b) {
    const int beside = below(2), line = below(kGrid), place = below(kGrid - 1);
    const int places[2] = {place, place + 1 + below(kGrid - 1 - place)};
    int words[kSaid] = {kA, 0, 0, kRelation + beside, kA, 0, 0};
    for (int i = 0; i < 2; ++i) {
      const int cell = beside ? line * kGrid + places[i] : places[i] * kGrid + line;
      const int colour = below(kKinds), shape = below(kKinds);
      paint(out.patches.row(cell).row(b).f32(), colour, shape, rng);
      out.cells.row(i).i32()[b] = cell;
      words[4 * i + 1] = colour, words[4 * i + 2] = kShape + shape;
    }
    for (int64_t t = 0; t < kSaid; ++t) out.words.row(t).i32()[b] = words[t];
  }
  return out;
}

struct Caption {
  Var logits;             // [kSaid, B, V]
  std::vector<Var> gaze;  // [B, patches] while each word is said
  Var log_probability;    // [kSaid, B] of the patches that hard attention drew
};

struct Captioner {
  nn::Linear patch, word;
  Parameter position;
  nn::Embedding embed;
  nn::GRUCell cell;
  std::unique_ptr<nn::Attention> attention;

  Captioner(const std::string& name, Rng& rng)
      : patch(kPixels, kUnits, rng),
        word(3 * kUnits, std::ssize(kWords), rng),
        position(Tensor::normal({kPatches, 1, kUnits}, 0, 0.5, rng)),
        embed(std::ssize(kWords), kUnits, rng),
        cell(2 * kUnits, kUnits, rng),
        attention(nn::make_attention(name, {kUnits, kUnits, kUnits}, rng)) {}
  // Says each word after the right ones before it. Contexts end in the weights, with their gradient.
  Caption operator()(const Batch& batch) const {
    const Var a = tanh(patch(batch.patches) + position);
    nn::AttentionMemory memory = attention->prepare(a, {});
    memory.annotations = concat({a, nn::unit_annotations(kPatches, a.size(1), a.dtype())}, -1);
    Var h = mean(a, 0), y = Tensor::zeros({a.size(1), kUnits}, a.dtype());
    std::vector<Var> logits, gaze, drawn;
    for (int64_t t = 0; t < kSaid; ++t) {
      const nn::Attended found = attention->step(h, memory, {});
      const std::vector<Var> z = split(found.context, {kUnits, kPatches}, -1);
      h = cell(concat({y, z[0]}, -1), h);
      logits.push_back(word(concat({y, h, z[0]}, -1)));
      y = embed(batch.words.row(t));
      gaze.push_back(z[1]);
      if (found.log_probability.defined()) drawn.push_back(found.log_probability);
    }
    return {stack(logits, 0), gaze, drawn.empty() ? Var() : stack(drawn, 0)};
  }
  void params(nn::ParamVisitor& visit) {
    visit("patch", patch), visit("word", word), visit("position", position);
    visit("embed", embed), visit("cell", cell), visit("attention", *attention);
  }
};

// Shares: of sentences with all words right; of the gaze, on a thing while its two words are said.
std::pair<double, double> score_of(const Captioner& model, const Batch& test) {
  NoGrad no_tape;
  const Caption said = model(test);
  const Tensor best = argmax(said.logits);
  double right = 0, seen = 0, all = static_cast<double>(test.words.size(1));
  for (int64_t b = 0; b < test.words.size(1); ++b) {
    int64_t words = 0;
    for (int64_t t = 0; t < kSaid; ++t) words += best.row(t).at(b) == test.words.row(t).at(b);
    right += words == kSaid;
    for (int64_t t : {1, 2, 5, 6}) seen += said.gaze[t].value().row(b).at(test.cells.row(t > 3).i32()[b]) / 4;
  }
  return {right / all, seen / all};
}

// The picture once for every word but "a": a letter and a form for a thing, the gaze in blue and in tenths.
std::string picture(const Caption& said, const Batch& one) {
  const translator::TerminalStyle style = translator::terminal_style(1);
  const Tensor best = argmax(said.logits);
  std::vector<std::string> cells(kPatches, "· ");
  for (int i : {0, 1})
    cells[one.cells.i32()[i]] =
        kWords[one.words.i32()[4 * i + 1]][0] + kForms[one.words.i32()[4 * i + 2] - kShape];
  std::string out;
  for (int64_t t : {1, 2, 3, 5, 6}) out += fmt::format("  {:<12}", kWords[best.i32()[t]]);
  for (int cell = 0; cell < kPatches; cell += kGrid)
    for (int64_t t : {1, 2, 3, 5, 6}) {
      out += t == 1 ? "\n  " : "  ";
      for (int i = cell; i < cell + kGrid; ++i)
        out += set_background(blue_shade(said.gaze[t].value().at(i), style.background), style.color) +
               cells[i] + " 123456789*"[std::lround(10 * said.gaze[t].value().at(i))] + reset(style.color);
    }
  return out + '\n';
}

void learn(const gallery::Program& program, const std::string& name, bool doubly) {
  const int64_t every = program.quick ? 15 : 200;
  Rng rng(program.seed), drawn = rng.split(1);
  const Batch test = scenes(program.quick ? kTest / 4 : kTest, drawn), one = scenes(1, drawn);
  Captioner model(name, rng);
  nn::Adam adam({.lr = kRate});
  double lately = std::log(kWords.size());  // the mean cost of a word, with which hard attention compares
  for (int64_t update = every; update <= kTests * every; update += every) {
    for (int64_t i = 0; i < every; ++i) {
      const Batch batch = scenes(kBatch, drawn);
      Training training(drawn.next_u64());
      const Caption said = model(batch);
      const Var costs = cross_entropy(said.logits, batch.words, {.reduction = Reduction::none}).loss;
      Var loss = mean(costs);
      if (said.log_probability.defined())
        loss = loss + nn::reinforce_term(said.log_probability, costs.value(),
                                         Tensor::ones(costs.shape(), DType::u8), lately, 1);
      lately += 0.1 * (loss.item() - lately);  // to which that term adds nothing
      if (doubly) loss = loss + sum(pow(1 - sum(stack(said.gaze, 0), 0), 2)) / (kSaid * kBatch);
      Gradients grads = backward(loss);
      adam.step(model, grads, nn::clip_factor(nn::grad_norm(grads), kClip));
    }
    const auto [right, gaze] = score_of(model, test);
    program.say("update {:>5}  loss {:.4f}  {:5.1f} % right  {:5.1f} % of the gaze right\n", update, lately,
                100 * right, 100 * gaze);
    program.event("test", {{"update", update}, {"loss", lately}, {"right", right}, {"gaze", gaze}});
  }
  const auto [right, gaze] = score_of(model, test);
  program.say("\nThe gaze, in tenths, while a word is said.\n\n{}", picture(model(one), one));
  program.event("result", {{"right", right}, {"gaze", gaze}});
}

}  // namespace

int main(int argc, char** argv) {
  gallery::Program program("gallery-captions", "Says what it sees in a picture (Xu et al. 2015).");
  std::string name = "bahdanau";
  bool doubly = false;
  program.option("--attention", name, "Over patches").one_of({"uniform", "bahdanau", "hard"}).show_default();
  program.flag("--doubly-stochastic", doubly, "Have all patches looked at equally, over all words");
  return program.run(argc, argv, [&] { learn(program, name, doubly); });
}
