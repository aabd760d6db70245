// Digits as hands write them, drawn by the program and told apart by attention over patches (a small version of
// Dosovitskiy et al. 2020, arXiv:2010.11929; Vaswani et al. 2017).
//
// What it shows: a picture can be read like a sentence. It is cut into patches, each becomes a vector by one
// linear layer and is told where it lies; from there on it is what a word is to a Transformer, without any
// convolution. With --layers 0 no patch knows of the others: a third is taken for another digit, and the
// weights rest on the ink. With layers what stands at a patch has come from many; its weight says little.
//
//   gallery-digits --layers 0
//
//   h_i = W x_i + b + p_i     h <- layers(h)        x_i: the pixels of patch i, p_i: its position, learned
//   e_i = v . tanh(W1 + W2 h_i)     a = softmax(e)  digit ~ softmax(W3 sum_i a_i h_i + b3)

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <common/terminal.h>
#include <gradus/nn/attention/additive.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/positions.h>
#include <gradus/nn/transformer.h>
#include <gradus/ops.h>

#include "gallery.h"

using namespace gradus;

namespace {

constexpr int64_t kSide = 16, kPatch = 4, kRow = kSide / kPatch, kPatches = kRow * kRow,
                  kPixels = kPatch * kPatch;
constexpr int64_t kDigits = 10, kUnits = 32, kHeads = 4, kBatch = 64, kTest = 1000, kReports = 12;
constexpr double kRate = 0.003;

struct Point {
  double x, y;  // from 0, the upper left corner, to 1
};

// The way of the pen, as corners.
const std::vector<std::vector<Point>> kStrokes = {
    {{.5, .05}, {.28, .15}, {.2, .5}, {.28, .85}, {.5, .95}, {.72, .85}, {.8, .5}, {.72, .15}, {.5, .05}},
    {{.3, .25}, {.55, .05}, {.55, .95}},
    {{.22, .28}, {.3, .1}, {.5, .05}, {.72, .12}, {.76, .3}, {.65, .5}, {.2, .95}, {.8, .95}},
    {{.22, .12}, {.5, .05}, {.74, .18}, {.7, .4}, {.45, .48}, {.74, .58}, {.78, .8}, {.5, .95}, {.2, .85}},
    {{.62, .95}, {.62, .05}, {.18, .65}, {.82, .65}},
    {{.75, .05}, {.3, .05}, {.26, .45}, {.55, .4}, {.78, .6}, {.7, .88}, {.45, .95}, {.2, .85}},
    {{.68, .06}, {.4, .25}, {.24, .6}, {.3, .88}, {.52, .95}, {.74, .8}, {.7, .58}, {.48, .5}, {.27, .65}},
    {{.2, .05}, {.8, .05}, {.42, .95}},
    {{.5, .48}, {.3, .3}, {.5, .05}, {.7, .3}, {.5, .48}, {.25, .75}, {.5, .95}, {.75, .75}, {.5, .48}},
    {{.73, .35}, {.55, .5}, {.3, .42}, {.26, .2}, {.45, .05}, {.7, .12}, {.73, .35}, {.7, .65}, {.55, .95}}};

double distance(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double along = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

struct Pictures {
  Tensor patches, digits;  // f32 [S, B, P] of ink from 0 to 1, i32 [B]

  Pictures(int64_t count, Rng& rng)
      : patches({kPatches, count, kPixels}, DType::f32), digits({count}, DType::i32) {
    for (int64_t b = 0; b < count; ++b) {
      digits.i32()[b] = static_cast<int32_t>(rng.below(kDigits));
      draw(b, rng);
    }
  }
  float& pixel(int64_t b, int64_t y, int64_t x) const {
    const int64_t patch = y / kPatch * kRow + x / kPatch;
    return patches.f32()[(patch * digits.numel() + b) * kPixels + y % kPatch * kPatch + x % kPatch];
  }

 private:
  // Leaning, turned, wide or narrow, not in the middle, with an unsteady hand, a thick or thin pen, and noise.
  void draw(int64_t b, Rng& rng) {
    const double lean = 0.25 * rng.normal(), turn = 0.15 * rng.normal(), pen = rng.uniform(0.5, 1.3);
    const double width = rng.uniform(8, 13), height = rng.uniform(10, 14);
    const Point middle{rng.uniform(6.5, 8.5), rng.uniform(6.5, 8.5)};
    std::vector<Point> way;
    for (Point p : kStrokes[digits.i32()[b]]) {
      const double y = height * (p.y - 0.5 + 0.04 * rng.normal());
      const double x = width * (p.x - 0.5 + 0.04 * rng.normal()) - lean * y;
      way.push_back({middle.x + x * std::cos(turn) - y * std::sin(turn),
                     middle.y + x * std::sin(turn) + y * std::cos(turn)});
    }
    for (int64_t y = 0; y < kSide; ++y)
      for (int64_t x = 0; x < kSide; ++x) {
        double nearest = kSide;
        for (size_t i = 1; i < way.size(); ++i)
          nearest = std::min(nearest,
                             distance({static_cast<double>(x), static_cast<double>(y)}, way[i - 1], way[i]));
        pixel(b, y, x) = static_cast<float>(std::clamp(pen + 0.5 - nearest + 0.15 * rng.normal(), 0.0, 1.0));
      }
  }
};

struct Model {
  nn::Linear read, answer;
  nn::LearnedPositions positions;
  std::optional<nn::TransformerEncoder> layers;
  nn::AdditiveAttention attention;

  Model(int64_t depth, Rng& rng)
      : read(kPixels, kUnits, rng),
        answer(kUnits, kDigits, rng),
        positions(kPatches, kUnits, rng),
        attention({1, kUnits, kUnits}, rng) {
    if (depth > 0)
      layers.emplace(depth, kUnits, kHeads, rng,
                     nn::TransformerOptions{.dim_feedforward = 4 * kUnits, .dropout = 0, .norm_first = true});
  }
  // Context [B, E] and weights [B, S].
  nn::Attended attend(const Tensor& patches) const {
    Var h = positions(read(patches));
    nn::AttentionMemory memory = attention.prepare(layers ? (*layers)(h) : h, {});
    return attention.step(Tensor::ones({patches.size(1), 1}, patches.dtype()), memory,
                          attention.start(memory));
  }
  Var operator()(const Tensor& patches) const { return answer(attend(patches).context); }
  void params(nn::ParamVisitor& visit) {
    visit("read", read), visit("positions", positions), visit("layers", layers);
    visit("attention", attention), visit("answer", answer);
  }
};

double share_wrong(const Model& model, const Pictures& test) {
  NoGrad no_tape;
  const Tensor said = argmax(model(test.patches).value());
  double wrong = 0;
  for (int64_t b = 0; b < said.numel(); ++b) wrong += said.i32()[b] != test.digits.i32()[b];
  return wrong / static_cast<double>(said.numel());
}

// The picture, and beside it the weights of its patches in percent.
std::string drawn(const Pictures& one, const Tensor& weights) {
  static const char* kInk[] = {"  ", "░░", "▒▒", "▓▓", "██"};
  const translator::TerminalStyle style = translator::terminal_style(1);
  std::string out;
  for (int64_t y = 0; y < kSide; ++y) {
    out += "  ";
    for (int64_t x = 0; x < kSide; ++x) out += kInk[std::lround(4 * one.pixel(0, y, x))];
    out += "    ";
    for (int64_t x = 0; x < kRow; ++x) {
      const double weight = weights.at(y / kPatch * kRow + x);
      const std::string number =
          y % kPatch == 1 ? fmt::format("{:^8.0f}", 100 * weight) : std::string(8, ' ');
      const translator::Shade blue = blue_shade(weight, style.background);
      const auto ink = blue.is_bright() ? translator::Shade{} : translator::Shade{255, 255, 255, 231};
      out +=
          set_background(blue, style.color) + set_foreground(ink, style.color) + number + reset(style.color);
    }
    out += '\n';
  }
  return out;
}

void learn(const gallery::Program& program, int64_t depth, int64_t updates) {
  Rng rng(program.seed), data = rng.split(1);
  Model model(depth, rng);
  const Pictures test(kTest, data), one(1, data);
  nn::Adam adam({.lr = kRate});
  program.say("{} parameters, {} pictures of the test\n\n  learned    loss    wrong\n",
              nn::num_parameters(model), kTest);
  double wrong = 1;
  for (int64_t report = 1, done = 0; report <= kReports; ++report) {
    double loss = 0;
    int64_t since = 0;
    for (; done < report * updates / kReports; ++done, ++since) {
      const Pictures batch(kBatch, data);
      Var batch_loss = cross_entropy(model(batch.patches), batch.digits).loss;
      adam.set_lr(kRate * (1 - static_cast<double>(done) / static_cast<double>(updates)));
      adam.step(model, backward(batch_loss));
      loss += batch_loss.item();
    }
    loss /= static_cast<double>(since);
    wrong = share_wrong(model, test);
    program.say("{:>9} {:>7.4f} {:>6.1f} %\n", done * kBatch, loss, 100 * wrong);
    program.event("test", {{"learned", done * kBatch}, {"loss", loss}, {"wrong", wrong}});
  }
  NoGrad no_tape;
  program.say("\nA {}, and the weights of its patches in percent. It is taken for a {}.\n\n{}",
              one.digits.i32()[0], argmax(model(one.patches).value()).i32()[0],
              drawn(one, model.attend(one.patches).weights));
  program.event("result", {{"wrong", wrong}, {"parameters", nn::num_parameters(model)}});
}

}  // namespace

int main(int argc, char** argv) {
  gallery::Program program("gallery-digits", "Written digits told apart by attention over patches.");
  int64_t layers = 2, updates = 3000;
  program.option("--layers", layers, "Of the Transformer").range(0, 8).show_default();
  program.option("--updates", updates, "Of 64 pictures").range(kReports, 1000000).show_default();
  return program.run(
      argc, argv, [&] { learn(program, layers, program.quick ? std::min<int64_t>(updates, 150) : updates); });
}
