// Letters are written down one after the other; one of them occurs several times. Chorowski et al. 2015,
// "Attention-based models for speech recognition" (arXiv:1506.07503), give the score the weights of the step
// before, convolved, so that attention can go on from where it was.
//
// What it shows: attention by content alone cannot tell equal places apart. An annotation sees a letter and the
// one before it, and nothing of where they stand (a recurrent encoder would count). "What follows A?" has one
// answer where A occurs once, and R answers where it occurs R times.
//
//   gallery-repeats --score bahdanau                     gallery-repeats --score location-aware
//
//   h_s = tanh(W [E x_{s-1} ; E x_s])                    s_t = GRU(E y_{t-1}, s_{t-1})
//   bahdanau:        e_ts = v . tanh(W s_t + V h_s)
//   location-aware:  e_ts = v . tanh(W s_t + V h_s + U f_ts + b)        f_t = F * weights_{t-1}
//   y_t = softmax(W_o tanh(W_r [c_t ; s_t]))

#include <string>
#include <utility>
#include <vector>

#include <common/heat_map.h>
#include <gradus/nn/attention/attention.h>
#include <gradus/nn/decoder.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#include <gradus/ops.h>

#include "gallery.h"

using namespace gradus;

namespace {

constexpr int32_t kLetters = 52, kEdge = kLetters;  // "·" stands before the first letter and after the last
constexpr int64_t kUnits = 64, kEvery = 250;
constexpr int64_t kShortest = 10, kLongest = 20;  // in training, where half of the letters may be one
constexpr double kLargestNorm = 1;

const std::vector<std::string> kScores = {"bahdanau", "location-aware"};

struct Sequences {
  Tensor before, letters;  // i32 [T, B]: each letter's predecessor, and itself, the edge at the end
  Tensor after_repeated;   // u8 [T, B]: the letters that follow the one that is repeated
};

// `length` letters each. One occurs `repeats` times, each time before another one; the others occur once.
Sequences draw(int64_t length, int64_t repeats, int64_t count, Rng& rng) {
  const int64_t T = length + 1, others = length - repeats;
  Sequences out{Tensor({T, count}, DType::i32), Tensor({T, count}, DType::i32),
                Tensor::zeros({T, count}, DType::u8)};
  std::vector<int32_t> letters(kLetters);
  for (int32_t i = 0; i < kLetters; ++i) letters[i] = i;
  for (int64_t b = 0; b < count; ++b) {
    for (int64_t i = 0; i <= others; ++i) std::swap(letters[i], letters[i + rng.below(kLetters - i)]);
    int32_t last = kEdge;
    int64_t t = 0, left = repeats;
    auto put = [&](int32_t letter) {
      out.before.i32()[t * count + b] = std::exchange(last, letter);
      out.letters.i32()[t++ * count + b] = letter;
    };
    for (int64_t i = 0; i < others; ++i) {
      if (rng.below(others - i) < left) {
        --left;
        put(letters[others]);
        out.after_repeated.u8()[t * count + b] = 1;
      }
      put(letters[i]);
    }
    put(kEdge);
  }
  return out;
}

struct Writer {
  nn::Embedding embed;
  nn::Linear window, output;
  nn::RecurrentDecoder decoder;

  Writer(const std::string& score, Rng& rng)
      : embed(kLetters + 1, kUnits, rng),
        window(2 * kUnits, kUnits, rng),
        output(kUnits, kLetters + 1, rng),
        decoder({kLetters + 1, kUnits, kUnits, kUnits, kUnits},
                nn::make_attention(score, {kUnits, kUnits, kUnits}, rng), rng,
                {.padding_idx = -1, .order = nn::Order::after_cell}) {}
  // Every letter from those before it, as they stand there: logits [T, B, V], weights [T, B, S].
  std::pair<Var, Tensor> operator()(const Sequences& x) const {
    nn::Encoded source;
    source.annotations = tanh(window(concat({embed(x.before), embed(x.letters)}, -1)));
    source.forward_final = Var(Tensor::zeros({x.letters.size(1), kUnits}, source.annotations.dtype()));
    nn::DecoderOutputs out = decoder.teacher_forced(x.before, source);
    return {output(out.readout), out.weights};
  }
  void params(nn::ParamVisitor& visit) {
    visit("embed", embed);
    visit("window", window);
    visit("decoder", decoder);
    visit("output", output);
  }
};

struct Errors {
  double after_repeated;  // share of wrong ones among the letters that follow the repeated one
  double sequences;       // share of sequences with something wrong: those that, written freely, would fail
};

Errors errors_of(const Writer& model, const Sequences& x) {
  NoGrad no_tape;
  const Tensor said = argmax(model(x).first);
  const int64_t T = said.size(0), B = said.size(1);
  double asked = 0, wrong = 0, failed = 0;
  for (int64_t b = 0; b < B; ++b) {
    bool all = true;
    for (int64_t i = b; i < T * B; i += B) {
      const bool right = said.i32()[i] == x.letters.i32()[i];
      all = all && right;
      asked += x.after_repeated.u8()[i];
      wrong += x.after_repeated.u8()[i] && !right;
    }
    failed += !all;
  }
  return {wrong / asked, failed / static_cast<double>(B)};
}

std::string picture(const Writer& model, const Sequences& one) {
  NoGrad no_tape;
  auto [logits, weights] = model(one);
  const Tensor said = argmax(logits);
  auto text = [](int32_t i) {
    return i == kEdge ? std::string("·") : std::string(1, static_cast<char>(i < 26 ? 'A' + i : 'a' + i - 26));
  };
  std::vector<std::string> source, target;
  for (int64_t t = 0; t < said.numel(); ++t) {
    const int32_t wanted = one.letters.i32()[t], got = said.i32()[t];
    source.push_back(text(wanted));
    target.push_back(wanted == got ? text(got) : fmt::format("{}, not {}", text(got), text(wanted)));
  }
  translator::HeatMapOptions options = translator::heat_map_options(translator::terminal_style(1));
  options.header = translator::HeatMapOptions::Header::vertical;
  const std::span<const float> numbers(weights.f32(), static_cast<size_t>(weights.numel()));
  return draw_heat_map({weights.size(0), weights.size(2), numbers}, source, target, options);
}

void learn(const gallery::Program& program, const std::string& score) {
  const int64_t updates = program.quick ? 350 : 4000, count = program.quick ? 16 : 32;
  Rng rng(program.seed), drawn = rng.split(1), tests = rng.split(2);
  Writer model(score, rng);
  nn::Adam adam({.lr = program.quick ? 0.01 : 0.003});
  program.say("{} parameters\n\n  update       loss\n", nn::num_parameters(model));
  double losses = 0;
  for (int64_t update = 1; update <= updates; ++update) {
    const int64_t length = kShortest + drawn.below(kLongest - kShortest + 1);
    const Sequences batch = draw(length, 1 + drawn.below(length / 2), count, drawn);
    Var loss = cross_entropy(model(batch).first, batch.letters).loss;
    Gradients grads = backward(loss);
    adam.step(model, grads, nn::clip_factor(nn::grad_norm(grads), kLargestNorm));
    losses += loss.item();
    if (update % kEvery != 0) continue;
    program.say("  {:>6} {:>10.5f}\n", update, losses / kEvery);
    program.event("learnt", {{"update", update}, {"loss", losses / kEvery}});
    losses = 0;
  }
  program.say("\n  letters  of them one  wrong after it  sequences not exact\n");
  auto test = [&](int64_t length, int64_t repeats) {
    const Errors e = errors_of(model, draw(length, repeats, program.quick ? 100 : 500, tests));
    program.say("  {:>7} {:>12} {:>13.1f} % {:>18.1f} %\n", length, repeats, 100 * e.after_repeated,
                100 * e.sequences);
    program.event(
        "test",
        {{"length", length}, {"repeats", repeats}, {"wrong", e.after_repeated}, {"failed", e.sequences}});
  };
  for (int64_t repeats : {1, 2, 3, 4, 6, 8}) test(kLongest, repeats);
  if (!program.quick)
    for (int64_t length : {30, 40, 50}) test(length, 4);  // longer than any in training
  program.say("\nWeights: the letters down, as they are written; places of the sequence across.\n\n{}",
              picture(model, draw(12, 4, 1, tests)));
  program.event("result", {{"updates", updates}, {"parameters", nn::num_parameters(model)}});
}

}  // namespace

int main(int argc, char** argv) {
  gallery::Program program(
      "gallery-repeats", "Letters written down by attention, one of them repeated (Chorowski et al. 2015).");
  std::string score = "location-aware";
  program.option("--score", score, "By content alone, or also by where it looked before")
      .one_of(kScores)
      .show_default();
  return program.run(argc, argv, [&] { learn(program, score); });
}
