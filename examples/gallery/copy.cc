// Copying and reversing random sequences, and what happens beyond the lengths that were practised: trained on 1
// to 20 symbols, tested to 60 (lengths as in the copy task of Graves et al. 2014, "Neural Turing machines",
// arXiv:1410.5401).
//
// What it shows: how an attention finds its place. Symbol t of the target wants one position of the source, t
// or n + 1 - t. A network that knows positions only by states or vectors which count them has never seen those
// beyond 20. One that looks next to where it looked last (location-aware, Chorowski et al. 2015,
// arXiv:1506.07503) need not count. Without attention all symbols must fit into one vector; a Transformer
// without positions cannot tell one order from another.
//
//   gallery-copy --task reverse --model location-aware
//   gallery-copy --model transformer --positions none

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <common/heat_map.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/scheduler.h>
#include <gradus/nn/search.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/ops.h>

#include "gallery.h"

using namespace gradus;

namespace {

constexpr int64_t kSymbols = 10, kFirst = nn::kEos + 1, kVocabulary = kFirst + kSymbols;
constexpr int64_t kBatch = 32, kTest = 100, kEvery = 100;
constexpr double kWarmUp = 100, kClip = 1;
const std::vector<double> kTested = {0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3};  // times the longest

struct Settings {
  std::string task = "copy", model = "bahdanau", positions = "sinusoidal";
  int64_t longest = 20, updates = 1000;
  double lr = 0.003;
  bool unidirectional = false;
};

// B sequences of n symbols each, as a translator reads and writes them.
nn::Seq2SeqBatch draw(const std::string& task, int64_t n, int64_t B, Rng& rng) {
  Tensor ids({n + 1, B}, DType::i32), lengths({B}, DType::i32);  // of sources: symbols, </s>
  nn::Seq2SeqBatch out{ids, lengths, ids.clone(), ids.clone(), (n + 1) * B};
  for (int64_t b = 0; b < B; ++b) {
    auto at = [&](const Tensor& t, int64_t i) -> int32_t& { return t.i32()[i * B + b]; };
    for (int64_t i = 0; i < n; ++i) at(ids, i) = static_cast<int32_t>(kFirst + rng.below(kSymbols));
    lengths.i32()[b] = static_cast<int32_t>(n + 1);
    at(ids, n) = at(out.target_out, n) = nn::kEos;
    at(out.target_in, 0) = nn::kBos;
    for (int64_t i = 0; i < n; ++i)
      at(out.target_out, i) = at(out.target_in, i + 1) = at(ids, task == "copy" ? i : n - 1 - i);
  }
  return out;
}

// About as many parameters each.
std::unique_ptr<nn::TranslationModel> make_model(const Settings& s, Rng& rng) {
  if (s.model == "transformer")
    return std::make_unique<nn::TransformerSeq2Seq>(nn::TransformerConfig{.source_vocabulary = kVocabulary,
                                                                          .target_vocabulary = kVocabulary,
                                                                          .d_model = 48,
                                                                          .num_layers = 2,
                                                                          .dim_feedforward = 96,
                                                                          .positions = s.positions},
                                                    rng);
  return std::make_unique<nn::Seq2Seq>(nn::Seq2SeqConfig{.source_vocabulary = kVocabulary,
                                                         .target_vocabulary = kVocabulary,
                                                         .embedding_dim = 32,
                                                         .hidden_size = 64,
                                                         .rnn = {.bidirectional = !s.unidirectional},
                                                         .attention = s.model},
                                       rng);
}

// What the network says by itself, its most probable symbol each time, up to one more than there should be.
std::vector<nn::Hypothesis> say(const nn::TranslationModel& model, const nn::Seq2SeqBatch& batch,
                                bool weights = false) {
  std::vector<nn::Hypothesis> out;
  for (std::vector<nn::Hypothesis>& said :
       nn::translate(model, batch.source, batch.source_lengths,
                     {.max_length = batch.source.size(0), .weights = weights}))
    out.push_back(std::move(said.front()));
  return out;
}

struct Right {
  double symbols = 0, sequences = 0;  // shares
  std::vector<double> places;         // of each symbol of the target
};

// A symbol is right in its own place only, a sequence if all of it is and it ends there.
Right right(const std::vector<nn::Hypothesis>& said, const Tensor& wanted) {
  const int64_t n = wanted.size(0) - 1, B = wanted.size(1);
  double symbols = 0, sequences = 0;
  std::vector<double> places(n);
  for (int64_t b = 0; b < B; ++b) {
    const std::vector<int32_t>& words = said[b].tokens;
    int64_t same = 0;
    for (int64_t i = 0; i < std::min<int64_t>(n, std::ssize(words)); ++i)
      if (words[i] == wanted.i32()[i * B + b]) ++same, places[i] += 1 / static_cast<double>(B);
    symbols += static_cast<double>(same);
    sequences += same == n && std::ssize(words) == n;
  }
  return {symbols / static_cast<double>(n * B), sequences / static_cast<double>(B), places};
}

std::vector<std::string> letters(const Tensor& ids, int64_t n) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t symbol = ids.i32()[i] - kFirst;
    out.emplace_back(1, symbol < 0 ? '?' : static_cast<char>('a' + symbol));
  }
  return out;
}

// Where it looked for each symbol that it said.
void draw_attention(const gallery::Program& program, const nn::Hypothesis& said, const Tensor& source) {
  const int64_t S = source.size(0), n = std::ssize(said.tokens);
  if (said.weights.empty() || n == 0) return program.say("\nIt has no attention to be drawn.\n");
  std::vector<std::string> above = letters(source, S - 1);
  above.emplace_back(".");
  std::vector<float> values;
  for (int64_t t = 0; t < n; ++t) values.insert(values.end(), said.weights[t].begin(), said.weights[t].end());
  program.say("\n{} symbols above, what it said of them on the left; weights by row\n\n{}", S - 1,
              draw_heat_map({n, S, values}, above, letters(Tensor::from_ids({n}, said.tokens), n),
                            heat_map_options(translator::terminal_style(1))));
}

void learn(const gallery::Program& program, const Settings& s) {
  Rng rng(program.seed), drawn = rng.split(1);
  const std::unique_ptr<nn::TranslationModel> model = make_model(s, rng);
  nn::Adam adam({.lr = s.lr});
  nn::Scheduler scheduler(adam,
                          nn::with_warmup(kWarmUp, nn::cosine_annealing_lr(static_cast<double>(s.updates))));
  program.say("{} parameters\n\n  update      loss\n", nn::num_parameters(*model));
  double loss = 0;
  for (int64_t update = 1; update <= s.updates; ++update) {
    const auto n = static_cast<int64_t>(1 + drawn.below(s.longest));
    CrossEntropy out = model->loss(draw(s.task, n, kBatch, drawn));
    Gradients grads = backward(out.loss);
    adam.step(*model, grads, nn::clip_factor(nn::grad_norm(grads), kClip));
    scheduler.step();
    loss += out.loss.item() / kEvery;
    if (update % kEvery != 0) continue;
    program.say("  {:>6} {:>9.4f}\n", update, loss);
    program.event("training", {{"update", update}, {"loss", loss}});
    loss = 0;
  }
  program.say("\n  length   symbols right   sequences right   (trained up to {})\n", s.longest);
  gallery::ordered_json result = {{"parameters", nn::num_parameters(*model)}};
  for (double times : kTested) {
    const int64_t n = std::max<int64_t>(1, std::llround(times * static_cast<double>(s.longest)));
    const nn::Seq2SeqBatch test = draw(s.task, n, kTest, drawn);
    const Right share = right(say(*model, test), test.target_out);
    program.say("  {:>6} {:>13.1f} % {:>15.1f} %\n", n, 100 * share.symbols, 100 * share.sequences);
    program.event("test", {{"length", n}, {"right_by_place", share.places}});
    result[fmt::format("symbols_{}", n)] = share.symbols;
    result[fmt::format("sequences_{}", n)] = share.sequences;
  }
  const nn::Seq2SeqBatch one = draw(s.task, s.longest + s.longest / 4, 1, drawn);
  draw_attention(program, say(*model, one, true).front(), one.source);
  program.event("result", result);
}

}  // namespace

int main(int argc, char** argv) {
  gallery::Program program("gallery-copy",
                           "Copies or reverses sequences longer than those it has learned from.");
  Settings s;
  std::vector<std::string> models = nn::attention_names();
  std::erase(models, "oracle");  // there are no gold links
  models.insert(models.end(), {"none", "transformer"});
  program.option("--task", s.task, "What is learned").one_of({"copy", "reverse"}).show_default();
  program.option("--model", s.model, "Attention of a recurrent translator, or the Transformer")
      .one_of(models)
      .show_default();
  auto positions = program.option("--positions", s.positions, "Of the Transformer")
      .one_of({"sinusoidal", "learned", "none"})
      .show_default();
  auto one_way = program.flag("--unidirectional", s.unidirectional,
                              "A recurrent encoder reads from the beginning only");
  program.option("--longest", s.longest, "Symbols of a sequence in training; tested to three times as many")
      .range(1, 80)
      .show_default();
  program.option("--updates", s.updates, "Batches to learn from").range(kEvery, 1000000).show_default();
  program.option("--lr", s.lr, "Adam's learning rate, the largest").positive(1).show_default();
  return program.run(argc, argv, [&] {
    if (s.model == "transformer" ? one_way.given() : positions.given())
      throw translator::UsageError("--positions is of --model transformer, --unidirectional of the others");
    if (program.quick)
      s.longest = std::min<int64_t>(s.longest, 6), s.updates = std::min<int64_t>(s.updates, 200);
    learn(program, s);
  });
}
