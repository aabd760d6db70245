// Questions about stories, answered by an end-to-end memory network (Sukhbaatar et al. 2015, arXiv:1503.08895).
//
// What it shows: attention taken several times over one memory. "where is the apple" needs two facts: who
// picked it up, and where that person went. What the first hop finds joins the question, so that the second can
// ask for the other fact. One hop cannot. The stories come from a small world, after the descriptions of the
// bAbI tasks 1 to 3 (Weston et al. 2015, arXiv:1502.05698); they are not those texts.
//
//   gallery-memory_network --task 2 --hops 1
//
//   m_i = sum_j A x_ij + T_A(i)       c_i likewise with C and T_C       u = sum_j B q_j (the paper's BoW)
//   p = softmax_i(u . m_i)            u <- u + sum_i p_i c_i, K times   answer = softmax(W u)
//   adjacent tying: A of hop k + 1 is C of hop k, B is the first A, W the last C

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <common/terminal.h>
#include <gradus/nn/attention/multiplicative.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/init.h>
#include <gradus/nn/optimizer.h>
#include <gradus/ops.h>

#include "gallery.h"

using namespace gradus;

namespace {

constexpr int64_t kUnits = 20, kTest = 1000, kBatch = 32, kBatches = 100;
constexpr double kRate = 0.01, kLargestNorm = 40;
constexpr int kFacts[] = {8, 12, 20}, kAsked[] = {3, 4, 7};  // in a story, and words of its question, by task

const std::vector<std::string> kWords = {"mary",   "john",    "sandra",   "daniel",  "kitchen", "garden",
                                         "office", "hallway", "bathroom", "bedroom", "apple",   "football",
                                         "milk",   "went",    "to",       "picked",  "up",      "the",
                                         "where",  "is",      "was",      "before"};
constexpr int kPersons = 4, kPlace = 4, kPlaces = 6, kThing = 10, kThings = 3;  // the first of them, how many
constexpr int kWent = 13, kPicked = 15, kThe = 17, kWhere = 18, kIs = 19, kWas = 20, kBefore = 21;

struct Question {
  std::vector<std::vector<int>> facts;  // words
  std::vector<int> asked;
  int answer;
  std::vector<int> support;  // the facts that the answer follows from
};

// Task 1: where is a person; 2: where is a thing; 3: where was a thing before it came where it is. Persons
// walk, and keep what they pick up.
Question draw(int64_t task, Rng& rng) {
  auto below = [&](int n) { return static_cast<int>(rng.below(n)); };
  for (;;) {
    std::vector<std::vector<int>> facts, moves(kPersons);  // `moves` and `picked` are numbers of facts
    std::vector<int> picked(kThings, -1);
    for (int now = 0; now < kFacts[task - 1]; ++now) {
      const int who = below(kPersons), what = below(kThings);
      const int from = moves[who].empty() ? below(kPlaces) : facts[moves[who].back()][4] - kPlace;
      const int to = kPlace + (from + 1 + below(kPlaces - 1)) % kPlaces;
      const bool picks = task > 1 && !moves[who].empty() && picked[what] < 0 && rng.uniform() < 0.6;
      const int verb = picks ? kPicked : kWent;  // "up" and "to" are the words behind
      facts.push_back({who, verb, verb + 1, kThe, picks ? kThing + what : to});
      (picks ? picked[what] : moves[who].emplace_back()) = now;
    }
    const int what = below(kThings), found = picked[what], thing = kThing + what;
    if (task > 1 && found < 0) continue;
    const int who = task > 1 ? facts[found][0] : below(kPersons);
    if (moves[who].empty()) continue;
    const int came = moves[who].back(), place = facts[came][4];
    if (task == 1) return {facts, {kWhere, kIs, who}, place, {came}};
    if (task == 2) return {facts, {kWhere, kIs, kThe, thing}, place, {found, came}};
    if (came < found) continue;  // it is where it was found
    const int before = moves[who].end()[-2];
    return {
        facts, {kWhere, kWas, kThe, thing, kBefore, kThe, place}, facts[before][4], {found, came, before}};
  }
}

struct Batch {
  Tensor facts, asked, answers, support;  // i32 [S, B, 5], [B, J], [B]; u8 [B, S]
};

Batch stories(int64_t task, int64_t B, Rng& rng) {
  const int64_t S = kFacts[task - 1], J = kAsked[task - 1];
  Batch out{Tensor({S, B, 5}, DType::i32), Tensor({B, J}, DType::i32), Tensor({B}, DType::i32),
            Tensor::zeros({B, S}, DType::u8)};
  for (int64_t b = 0; b < B; ++b) {
    const Question q = draw(task, rng);
    for (int64_t s = 0; s < S; ++s) std::ranges::copy(q.facts[s], out.facts.i32() + 5 * (s * B + b));
    std::ranges::copy(q.asked, out.asked.i32() + b * J);
    out.answers.i32()[b] = q.answer;
    for (int fact : q.support) out.support.u8()[b * S + fact] = 1;
  }
  return out;
}

struct MemoryNetwork {
  std::vector<nn::Embedding> words;  // A of the first hop, then C of each
  std::vector<Parameter> times;      // T_A, T_C [S, 1, E], likewise
  nn::DotAttention attention;

  MemoryNetwork(int64_t hops, int64_t S, Rng& rng) : attention({kUnits, kUnits, 0}, rng) {
    for (int64_t k = 0; k <= hops; ++k) {
      nn::init::normal_(words.emplace_back(std::ssize(kWords), kUnits, rng).weight, 0, 0.1, rng);
      times.emplace_back(Tensor::normal({S, 1, kUnits}, 0, 0.1, rng));
    }
  }
  // Logits [B, V], weights [B, S] of each hop. A linear start (section 4.2) has scores in place of weights.
  std::pair<Var, std::vector<Tensor>> operator()(const Batch& b, bool linear_start = false) const {
    std::vector<Tensor> weights;
    auto stored = [&](size_t k) { return sum(words[k](b.facts), -2) + times[k]; };
    Var u = sum(words[0](b.asked), -2), m = stored(0);
    for (size_t k = 1; k < words.size(); ++k) {
      Var c = stored(k);
      nn::AttentionMemory memory{c, attention.keys_of(m)};
      nn::Attended found = attention.step(u, memory, {});
      u = u + (linear_start ? weighted_sum(attention.scores(u, memory, {}), c) : found.context);
      weights.push_back(found.weights);
      m = c;
    }
    return {linear(u, words.back().weight), weights};
  }
  void params(nn::ParamVisitor& visit) { visit("words", words), visit("times", times); }
};

double share_wrong(const MemoryNetwork& model, const Batch& batch) {
  NoGrad no_tape;
  Tensor best = argmax(model(batch).first);
  double wrong = 0;
  for (int64_t b = 0; b < best.numel(); ++b) wrong += best.at(b) != batch.answers.at(b);
  return wrong / static_cast<double>(best.numel());
}

std::string text_of(const Tensor& words) {
  std::string text;
  for (int64_t i = 0; i < words.numel(); ++i) text += (i > 0 ? " " : "") + kWords[words.i32()[i]];
  return text;
}

// A line a fact: a star where the answer follows from it, and the weight that each hop gives it.
std::string picture(const Batch& one, const std::vector<Tensor>& weights) {
  const translator::TerminalStyle style = translator::terminal_style(1);
  std::string out;
  for (int64_t s = 0; s < one.facts.size(0); ++s) {
    out += fmt::format("  {} {:<32}", one.support.at(s) > 0 ? '*' : ' ', text_of(one.facts.row(s)));
    for (const Tensor& w : weights) {
      const translator::Shade blue = blue_shade(w.at(s), style.background);
      out += fmt::format("  {:.2f} {}  {}", w.at(s), set_background(blue, style.color), reset(style.color));
    }
    out += '\n';
  }
  return out;
}

void learn(const gallery::Program& program, int64_t task, int64_t hops) {
  const int64_t epochs = program.quick ? 30 : 60;
  Rng rng(program.seed), drawn = rng.split(1);
  std::vector<Batch> train;
  for (int64_t i = 0; i < kBatches; ++i) train.push_back(stories(task, kBatch, drawn));
  const Batch test = stories(task, kTest, drawn), one = stories(task, 1, drawn);
  MemoryNetwork model(hops, test.facts.size(0), rng);
  nn::SGD sgd;
  double wrong = 1;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const bool linear_start = epoch < epochs / 3;
    sgd.set_lr(kRate * std::pow(0.5, 4 * epoch / epochs) * (linear_start ? 0.5 : 1));
    double loss = 0;
    for (const Batch& batch : train) {
      Var logits = model(batch, linear_start).first;
      CrossEntropy out = cross_entropy(logits, batch.answers, {.reduction = Reduction::sum});
      Gradients grads = backward(out.loss);
      sgd.step(model, grads, nn::clip_factor(nn::grad_norm(grads), kLargestNorm));
      loss += out.nll / static_cast<double>(kBatch * kBatches);
    }
    wrong = share_wrong(model, test);
    program.say("epoch {:>2}  loss {:.4f}  {:.1f} % wrong\n", epoch + 1, loss, 100 * wrong);
    program.event("epoch", {{"epoch", epoch + 1}, {"loss", loss}, {"wrong", wrong}});
  }
  NoGrad no_tape;
  auto [logits, weights] = model(one);
  program.say("\nWeights of each hop. The answer follows from the facts with a star.\n\n{}",
              picture(one, weights));
  program.say("\n  {}? {} is right, {} is answered\n", text_of(one.asked), text_of(one.answers),
              text_of(argmax(logits)));
  program.event("result", {{"wrong", wrong}, {"parameters", nn::num_parameters(model)}});
}

}  // namespace

int main(int argc, char** argv) {
  gallery::Program program(
      "gallery-memory_network",
      "Answers to questions that take one, two or three facts (Sukhbaatar et al. 2015).");
  int64_t task = 2, hops = 3;
  program.option("--task", task, "Facts that an answer takes").range(1, 3).show_default();
  program.option("--hops", hops, "How often it attends").range(1, 10).show_default();
  return program.run(argc, argv, [&] { learn(program, task, hops); });
}
