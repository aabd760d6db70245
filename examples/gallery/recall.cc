// How far back a recurrent network can look: the first word of a sequence is wanted at its end. Bengio, Simard
// and Frasconi 1994, "Learning long-term dependencies with gradient descent is difficult"; Hochreiter and
// Schmidhuber 1997; why it is attention that translators have.
//
// What it shows: what a network can learn to recall is what its gradient can reach. Beside the share that is
// recalled stands |dL/dh_t| of every state, before training and after it.
//
//   build/examples/gallery/gallery-recall --cell rnn --lag 16

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <common/progress.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/recurrent.h>
#include <gradus/ops.h>

#include "gallery.h"

using namespace gradus;

namespace {

constexpr int64_t kWords = 8, kEmbedding = 16, kUnits = 32, kBatch = 64, kTest = 1000, kEvery = 100;
constexpr double kClip = 1;

struct Settings {
  std::string cell = "rnn";
  int64_t lag = 16, updates = 10000;
  double lr = 0.003;
};

// ids i32 [T, B] -> logits [B, words] of the last state.
struct Model {
  nn::Embedding embed;
  nn::RecurrentStack memory;
  nn::Linear answer;

  Model(const std::string& cell, Rng& rng)
      : embed(2 * kWords, kEmbedding, rng),
        memory("memory", kEmbedding, kUnits, rng, {.bidirectional = false, .cell = nn::cell_type(cell)}),
        answer(kUnits, kWords, rng) {}
  Var operator()(const Tensor& ids) const { return answer(memory(embed(ids)).forward_final); }
  void params(nn::ParamVisitor& visit) {
    visit("embed", embed);
    visit("memory", memory);
    visit("answer", answer);
  }
};

struct Sequences {
  Tensor ids, first;  // i32 [lag + 1, B], [B]
};

// One of the words, and then fillers, of which there are as many.
Sequences sequences(int64_t lag, int64_t count, Rng& rng) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < (lag + 1) * count; ++i)
    ids.push_back(static_cast<int32_t>((i < count ? 0 : kWords) + rng.below(kWords)));
  Tensor all = Tensor::from_ids({lag + 1, count}, ids);
  return {all, all.row(0)};
}

double share_recalled(const Model& model, const Sequences& test) {
  NoGrad no_tape;
  Tensor said = argmax(model(test.ids).value());
  int64_t right = 0;
  for (int64_t i = 0; i < said.numel(); ++i) right += said.i32()[i] == test.first.i32()[i];
  return static_cast<double>(right) / static_cast<double>(said.numel());
}

// |dL/dh_t| of every state, from the first word's on.
std::vector<double> gradient_lengths(const Model& model, const Sequences& some) {
  std::vector<Var> states = model.memory.states(0, model.embed(some.ids))[0];
  Var loss = cross_entropy(model.answer(states.back()), some.first).loss;
  Gradients grads = backward(loss, {.keep = states});
  std::vector<double> out;
  // In double: in float the square of what is less than 1e-22 is 0.
  for (const Var& h : states) out.push_back(std::sqrt(sum(pow(grads[h].to(DType::f64), 2)).item()));
  return out;
}

// dL/dh of the first state over that of the last.
double reach(const std::vector<double>& lengths) { return lengths.front() / lengths.back(); }

void draw(const gallery::Program& program, const char* when, const std::vector<double>& lengths) {
  std::vector<double> decades;
  for (double x : lengths) decades.push_back(std::log10(std::max(x, 1e-30)));
  program.say("  {:<16} {}  first / last = {:.2g}\n", when, translator::sparkline(decades, 40),
              reach(lengths));
}

void learn(const gallery::Program& program, const Settings& s) {
  Rng rng(program.seed), drawn = rng.split(1);
  Model model(s.cell, rng);
  const Sequences test = sequences(s.lag, kTest, drawn), some = sequences(s.lag, kBatch, drawn);
  const std::vector<double> before = gradient_lengths(model, some);
  nn::Adam adam({.lr = s.lr});
  program.say("{} parameters, {} words, chance recalls {:.1f} %\n\n  update       loss   recalled\n",
              nn::num_parameters(model), kWords, 100.0 / kWords);
  double right = 0, loss_sum = 0;
  int64_t update = 0;
  while (right < 1 && update < s.updates) {
    const Sequences batch = sequences(s.lag, kBatch, drawn);
    Var loss = cross_entropy(model(batch.ids), batch.first).loss;
    Gradients grads = backward(loss);
    nn::clip_grad_norm(grads, kClip);
    adam.step(model, grads);
    loss_sum += loss.item();
    if (++update % kEvery != 0) continue;
    right = share_recalled(model, test);
    program.say("  {:>6} {:>10.5f} {:>8.1f} %\n", update, loss_sum / kEvery, 100 * right);
    program.event("test", {{"update", update}, {"loss", loss_sum / kEvery}, {"recalled", right}});
    loss_sum = 0;
  }
  const std::vector<double> after = gradient_lengths(model, some);
  program.say("\nlog |dL/dh_t|, from the first word's state to the last one\n\n");
  draw(program, "before training", before);
  draw(program, "after", after);
  program.event("result", {{"recalled", right},
                           {"updates", update},
                           {"reach_before", reach(before)},
                           {"reach_after", reach(after)},
                           {"parameters", nn::num_parameters(model)}});
}

}  // namespace

int main(int argc, char** argv) {
  gallery::Program program("gallery-recall",
                           "How far back a recurrent network learns to look (Bengio et al. 1994).");
  Settings s;
  program.option("--cell", s.cell, "Of the network").one_of(nn::cell_names()).show_default();
  program.option("--lag", s.lag, "Words that come after the one to be recalled")
      .range(1, 1000)
      .show_default();
  program.option("--lr", s.lr, "Adam's learning rate").positive(1).show_default();
  program.option("--updates", s.updates, "At most; it ends when all of the test is recalled")
      .range(kEvery, 1000000)
      .show_default();
  return program.run(argc, argv, [&] {
    if (program.quick) s.updates = std::min<int64_t>(s.updates, 1000);
    learn(program, s);
  });
}
