// Questions with a blank about a story that was read: the attentive reader (Hermann et al. 2015,
// arXiv:1506.03340), and the score of Chen et al. 2016 (arXiv:1606.02858).
//
// What it shows: a reader that keeps all states of a story, and looks at them once it knows the question, finds
// the answer. One that has to carry it in its last state finds what it reads in the right order; a mean of all
// states tells next to nothing. Names are markers, dealt anew for each story, so that only reading helps.
//
//   gallery-attentive_reader --head general
//
//   y_t = [forward ; backward] states of the story, u = the last ones of the question
//   bahdanau, general: s = softmax_t(score(u, y_t)), r = sum_t s_t y_t      uniform: r = the mean of y_t
//   none: question and story are read as one sequence, r = its last states ("Deep LSTM reader")
//   answer = softmax(W tanh(W_r r + W_u u)) over all markers

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <common/terminal.h>
#include <gradus/nn/attention/attention.h>
#include <gradus/nn/encoder.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#include <gradus/ops.h>

#include "gallery.h"

using namespace gradus;

namespace {

constexpr int64_t kEmbedding = 32, kUnits = 32, kBatch = 32, kTest = 1000, kTests = 20;
constexpr int64_t kAsked = 4, kSentence = 5;  // words of a question, and of a sentence
constexpr double kRate = 0.003, kClip = 5;

// Verbs stand in pairs of one meaning: the question may say it in another word than the story. Then fillers.
const std::vector<std::string> kWords = {
    "X",       "visited", "met",     "praised", "applauded", "sued", "accused", "beat",  "outdid", "hired",
    "engaged", "warned",  "alerted", "quietly", "openly",    "soon", "again",   "today", "."};
constexpr int kBlank = 0, kVerb = 1, kVerbs = 6, kFiller = 13, kFillers = 5, kStop = 18;
constexpr int kMarker = 19, kMarkers = 10;  // behind the words: @0 to @9

struct Batch {
  Tensor words, answers, said;  // i32 [kAsked + S, B], [B]; f32 [B, S], 1 in the sentence with the answer
};

// A question is a sentence of its story with a blank for a name, before the verb in every other one, else
// behind it. A verb has each name once before it and once behind it, so that there is one answer.
Batch stories(int64_t sentences, int64_t B, Rng& rng) {
  auto below = [&](int64_t n) { return static_cast<int>(rng.below(n)); };
  const int64_t S = kSentence * sentences;
  Batch out{Tensor({kAsked + S, B}, DType::i32), Tensor({B}, DType::i32), Tensor::zeros({B, S})};
  for (int64_t b = 0; b < B; ++b) {
    std::vector<std::array<int, 3>> facts;  // who, verb, whom
    std::vector<int> words;
    while (std::ssize(facts) < sentences) {
      const int who = kMarker + below(kMarkers), verb = below(kVerbs), whom = kMarker + below(kMarkers);
      auto hides = [&](const auto& f) { return f[1] == verb && (f[0] == who || f[2] == whom); };
      if (who == whom || std::ranges::any_of(facts, hides)) continue;
      facts.push_back({who, verb, whom});
      words.insert(words.end(), {who, kVerb + 2 * verb + below(2), whom, kStop});
      const int filler = kFiller + below(kFillers);
      words.insert(words.end() - 4 + below(4), filler);
    }
    const int said = below(sentences), blank = b % 2 == 0 ? 0 : 2;
    auto asked = facts[said];
    out.answers.i32()[b] = std::exchange(asked[blank], kBlank) - kMarker;
    words.insert(words.begin(), {asked[0], kVerb + 2 * asked[1] + below(2), asked[2], kStop});
    for (int64_t t = 0; t < kAsked + S; ++t) out.words.row(t).i32()[b] = words[t];
    std::fill_n(out.said.row(b).f32() + kSentence * said, kSentence, 1.0f);
  }
  return out;
}

struct Reader {
  nn::Encoder story, question;
  std::unique_ptr<nn::Attention> attention;  // none: null
  nn::Linear join, answer;

  Reader(const std::string& head, Rng& rng)
      : story(kMarker + kMarkers, kEmbedding, kUnits, rng, {.padding_idx = -1}),
        question(kMarker + kMarkers, kEmbedding, kUnits, rng, {.padding_idx = -1}),
        join(4 * kUnits, 2 * kUnits, rng),
        answer(2 * kUnits, kMarkers, rng) {
    if (head != "none") attention = nn::make_attention(head, {2 * kUnits, 2 * kUnits, 2 * kUnits}, rng);
  }
  // Logits [B, markers], and weights [B, S] where it attends.
  std::pair<Var, Tensor> operator()(const Tensor& words) const {
    auto read = [](const nn::Encoder& encoder, const Tensor& ids) {
      return encoder(ids, Tensor::full({ids.size(1)}, static_cast<double>(ids.size(0))).to(DType::i32));
    };
    const Var u = read(question, words.rows(0, kAsked)).final_states();
    auto answered = [&](const Var& r) { return answer(tanh(join(concat({r, u}, -1)))); };
    if (!attention) return {answered(read(story, words).final_states()), {}};
    const nn::Encoded y = read(story, words.rows(kAsked, words.size(0)));
    const nn::AttentionMemory memory = attention->prepare(y.annotations, y.mask);
    const nn::Attended found = attention->step(u, memory, attention->start(memory));
    return {answered(found.context), found.weights};
  }
  void params(nn::ParamVisitor& visit) {
    visit("story", story), visit("question", question), visit("attention", attention);
    visit("join", join), visit("answer", answer);
  }
};

// Of the markers that the question does not have, the one that the story has most often.
int most_frequent(const Tensor& words, int64_t b) {
  int64_t count[kMarkers] = {};
  for (int64_t t = 0; t < words.size(0); ++t)
    if (const int marker = words.row(t).i32()[b] - kMarker; marker >= 0)
      count[marker] += t < kAsked ? -words.size(0) : 1;
  return static_cast<int>(std::ranges::max_element(count) - count);
}

// Shares: of answers right, all, to blanks before the verb and behind it, and by frequency; of weights right.
struct Score {
  double right = 0, before = 0, behind = 0, frequent = 0, found = 0;
};

Score score_of(const Reader& model, const Batch& batch) {
  NoGrad no_tape;
  const auto [logits, weights] = model(batch.words);
  const Tensor best = argmax(logits);
  Score out;
  for (int64_t b = 0; b < kTest; ++b) {
    (b % 2 == 0 ? out.before : out.behind) += best.at(b) == batch.answers.at(b);
    out.frequent += most_frequent(batch.words, b) == batch.answers.at(b);
  }
  out.right = (out.before + out.behind) / kTest;
  out.before /= kTest / 2, out.behind /= kTest / 2, out.frequent /= kTest;
  if (weights.defined()) out.found = sum(Var(weights) * batch.said).item() / kTest;
  return out;
}

std::string name_of(int word) { return word < kMarker ? kWords[word] : fmt::format("@{}", word - kMarker); }

// A line a sentence: its weight, a star where the answer is, and its words, shaded by their own weights.
std::string picture(const Batch& one, const Tensor& weights) {
  const translator::TerminalStyle style = translator::terminal_style(1);
  std::string out;
  for (int64_t i = 0; i < weights.numel(); i += kSentence) {
    const double all = sum(weights.reshape({-1, kSentence}).row(i / kSentence)).item();
    out += fmt::format("  {} {:.2f} ", one.said.at(i) > 0 ? '*' : ' ', all);
    for (int64_t s = i; s < i + kSentence; ++s)
      out += ' ' + set_background(blue_shade(weights.at(s), style.background), style.color) +
             name_of(one.words.i32()[kAsked + s]) + reset(style.color);
    out += '\n';
  }
  return out;
}

void learn(const gallery::Program& program, const std::string& head) {
  const int64_t sentences = program.quick ? 3 : 8, every = program.quick ? 12 : 200;
  Rng rng(program.seed), drawn = rng.split(1);
  const Batch test = stories(sentences, kTest, drawn), one = stories(sentences, 1, drawn);
  Reader model(head, rng);
  nn::Adam adam({.lr = kRate});
  double loss = 0;
  Score s;
  for (int64_t update = 1; update <= kTests * every; ++update) {
    const Batch batch = stories(sentences, kBatch, drawn);
    Var nll = cross_entropy(model(batch.words).first, batch.answers).loss;
    Gradients grads = backward(nll);
    adam.step(model, grads, nn::clip_factor(nn::grad_norm(grads), kClip));
    loss += nll.item() / static_cast<double>(every);
    if (update % every != 0) continue;
    s = score_of(model, test);
    program.say("update {:>5}  loss {:.4f}  {:5.1f} % right\n", update, loss, 100 * s.right);
    program.event("test", {{"update", update}, {"loss", loss}, {"right", s.right}});
    loss = 0;
  }
  NoGrad no_tape;
  const auto [logits, weights] = model(one.words);
  if (weights.defined())
    program.say("\nWeights of sentences and words. The star is where the answer is.\n\n{}",
                picture(one, weights));
  std::string asked;
  for (int64_t j = 0; j < kAsked; ++j) asked += name_of(one.words.i32()[j]) + ' ';
  program.say("\n  {} @{} is right, @{} is answered\n", asked, one.answers.item(), argmax(logits).item());
  program.event("result", {{"right", s.right},
                           {"before", s.before},
                           {"behind", s.behind},
                           {"frequent", s.frequent},
                           {"found", s.found}});
}

}  // namespace

int main(int argc, char** argv) {
  gallery::Program program("gallery-attentive_reader",
                           "Fills the blank in a sentence about a story that it read (Hermann et al. 2015).");
  std::string head = "general";
  program.option("--head", head, "What is made of the story")
      .one_of({"uniform", "none", "bahdanau", "general"})
      .show_default();
  return program.run(argc, argv, [&] { learn(program, head); });
}
