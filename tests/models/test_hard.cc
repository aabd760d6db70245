// Hard attention: its estimator against the exact gradient of the expected cost, worked out over all paths.

#include <cmath>

#include <gradus/nn/attention/hard.h>
#include <gradus/nn/seq2seq.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "attentions.h"
#include "small_models.h"

using namespace gradus;
using namespace attentions;
using nn::Seq2Seq;
using nn::Seq2SeqBatch;
using small_models::worst;

namespace hard_test {
namespace {

constexpr int64_t kSource = 3, kTarget = 2;  // 3 x 3 = 9 paths

Seq2Seq tiny(const std::string& decoder) {
  nn::Seq2SeqConfig c;
  c.source_vocabulary = c.target_vocabulary = 7;
  c.embedding_dim = 3;
  c.hidden_size = 4;
  c.attention_size = 3;
  c.attention = "hard";
  c.decoder = decoder;
  Rng rng(31);
  Seq2Seq model(c, rng);
  nn::to(model, DType::f64);
  return model;
}

Seq2SeqBatch one_sentence() {
  Seq2SeqBatch b;
  b.source = Tensor::from_ids({kSource, 1}, {4, 5, 3});
  b.source_lengths = Tensor::from_ids({1}, {3});
  b.target_in = Tensor::from_ids({kTarget, 1}, {2, 6});
  b.target_out = Tensor::from_ids({kTarget, 1}, {6, 3});
  b.target_tokens = kTarget;
  return b;
}

Tensor path(int64_t first, int64_t second) {
  Tensor p = Tensor::zeros({kTarget, 1, kSource});
  p.set(first, 1);
  p.set(kSource + second, 1);
  return p;
}

// log p of a path, differentiable.
Var log_probability(const Seq2Seq& model, Seq2SeqBatch batch) {
  nn::Encoded source = model.encoder(batch.source, batch.source_lengths);
  source.alignment = batch.alignment;
  return sum(model.decoder->teacher_forced(batch.target_in, source).log_probability);
}

std::vector<Tensor> gradients(Seq2Seq& model, const Var& loss) {
  Gradients g = backward(loss);
  std::vector<Tensor> out;
  for (auto& p : nn::named_parameters(model))
    out.push_back(g.contains(*p.parameter) ? g[*p.parameter]
                                           : Tensor::zeros(p.parameter->shape(), DType::f64));
  return out;
}

void add(std::vector<Tensor>& sum, double factor, const std::vector<Tensor>& x) {
  if (sum.empty())
    for (const Tensor& t : x) sum.push_back(Tensor::zeros(t.shape(), t.dtype()));
  for (size_t i = 0; i < x.size(); ++i)
    for (int64_t k = 0; k < x[i].numel(); ++k) sum[i].set(k, sum[i].at(k) + factor * x[i].at(k));
}

// d/dw sum over paths of p(path) cost(path).
std::vector<Tensor> exact(Seq2Seq& model, double label_smoothing) {
  Var expected;
  for (int64_t i = 0; i < kSource; ++i)
    for (int64_t j = 0; j < kSource; ++j) {
      Seq2SeqBatch batch = one_sentence();
      batch.alignment = path(i, j);
      Var p = exp(log_probability(model, batch));
      // The cost alone: its own term for the choices has no value, and is left out by differentiating at its
      // constant.
      nn::Encoded source = model.encoder(batch.source, batch.source_lengths);
      source.alignment = batch.alignment;
      Var readout = model.decoder->teacher_forced(batch.target_in, source).readout;
      Var logits = model.output(reshape(readout, {kTarget, 4}));
      Var cost = cross_entropy(logits, batch.target_out.reshape({kTarget}),
                               {.ignore_index = nn::kPad, .label_smoothing = label_smoothing})
                     .loss;
      expected = expected.defined() ? expected + p * cost : p * cost;
    }
  return gradients(model, expected);
}

}  // namespace

TEST_CASE("the probabilities of all paths add up to 1") {
  Seq2Seq model = tiny("bahdanau");
  double total = 0;
  for (int64_t i = 0; i < kSource; ++i)
    for (int64_t j = 0; j < kSource; ++j) {
      Seq2SeqBatch batch = one_sentence();
      batch.alignment = path(i, j);
      total += std::exp(log_probability(model, batch).item());
    }
  CHECK(total == about(1, 1e-12));
}

TEST_CASE("the estimator's expectation over all paths is the exact gradient, whatever the baseline") {
  for (const char* order : {"bahdanau", "luong"})
    for (double baseline : {0.0, 1.9}) {
      CAPTURE(order);
      CAPTURE(baseline);
      Seq2Seq model = tiny(order);
      std::vector<Tensor> expectation;
      for (int64_t i = 0; i < kSource; ++i)
        for (int64_t j = 0; j < kSource; ++j) {
          Seq2SeqBatch batch = one_sentence();
          batch.alignment = path(i, j);
          double p = std::exp(log_probability(model, batch).item());
          nn::LossOptions options{.label_smoothing = 0.1, .baseline = baseline};
          add(expectation, p, gradients(model, model.loss(batch, options).loss));
        }
      std::vector<Tensor> truth = exact(model, 0.1);
      CHECK(worst(expectation, truth) < 1e-12);
      // It is not the gradient of one path, nor that without the term for the choices.
      double size = 0;
      for (const Tensor& t : truth)
        size = worse(size, max_abs_difference(t, Tensor::zeros(t.shape(), DType::f64)));
      CHECK(size > 0.01);
    }
}

TEST_CASE("the mean over many drawn paths comes near the exact gradient, and nearer with a baseline") {
  Seq2Seq model = tiny("bahdanau");
  std::vector<Tensor> truth = exact(model, 0);
  auto names = nn::named_parameters(model);
  size_t v = 0;
  while (names[v].name != "decoder.attention.score.v") ++v;
  auto run = [&](double baseline, double& variance) {
    constexpr int kDraws = 3000;
    std::vector<Tensor> mean;
    double square = 0;
    for (int n = 0; n < kDraws; ++n) {
      Training training(static_cast<uint64_t>(n) + 1);
      std::vector<Tensor> g = gradients(model, model.loss(one_sentence(), {.baseline = baseline}).loss);
      for (int64_t k = 0; k < g[v].numel(); ++k) square += std::pow(g[v].at(k) - truth[v].at(k), 2) / kDraws;
      add(mean, 1.0 / kDraws, g);
    }
    variance = square;
    return std::sqrt(variance / kDraws) * 5 - max_abs_difference(mean[v], truth[v]);  // five standard errors
  };
  double without = 0, with = 0;
  CHECK(run(0, without) > 0);
  CHECK(run(1.9, with) > 0);  // near ln 7, what a word costs here
  CHECK(with < without / 4);
}

TEST_CASE("draws follow the probabilities, and the same seed draws the same") {
  Rng rng(33);
  nn::HardAttention hard(sizes(), rng);
  nn::AttentionMemory memory = hard.prepare(annotations(rng), mask());
  Tensor q = queries(rng).row(0), p = softmax(hard.scores(q, memory, {}), {.mask = mask()}).value();
  std::vector<double> counts(static_cast<size_t>(S), 0);
  constexpr int kDraws = 4000;
  for (int n = 0; n < kDraws; ++n) {
    Training training(static_cast<uint64_t>(n));
    nn::Attended a = hard.step(q, memory, {});
    for (int64_t s = 0; s < S; ++s) counts[static_cast<size_t>(s)] += a.weights.at(s);
    CHECK(a.log_probability.value().at(1) == 0);  // nothing to draw from
  }
  for (int64_t s = 0; s < S; ++s) {
    double share = counts[static_cast<size_t>(s)] / kDraws,
           error = std::sqrt(p.at(s) * (1 - p.at(s)) / kDraws);
    CHECK(std::abs(share - p.at(s)) < 5 * error);
  }
  auto drawn = [&](uint64_t seed) {
    Training training(seed);
    return hard.step(q, memory, {}).weights;
  };
  CHECK(max_abs_difference(drawn(7), drawn(7)) == 0);
}

TEST_CASE("outside of training it takes the most probable position, and counts nothing") {
  Rng rng(34);
  nn::HardAttention hard(sizes(), rng);
  nn::AttentionMemory memory = hard.prepare(annotations(rng), mask());
  Tensor q = queries(rng).row(0), p = softmax(hard.scores(q, memory, {}), {.mask = mask()}).value();
  nn::Attended a = hard.step(q, memory, {});
  CHECK_FALSE(a.log_probability.defined());
  Tensor best = argmax(p), taken = argmax(a.weights);
  CHECK(best.i32()[0] == taken.i32()[0]);
  CHECK(best.i32()[2] == taken.i32()[2]);
}

TEST_CASE("reinforce: costs to go less the baseline, over real words") {
  Var log_p = variable(Tensor::from({3, 2}, {-1, -2, -3, -4, -5, -6}, DType::f64));
  Tensor costs = Tensor::from({3, 2}, {1, 2, 3, 4, 5, 0}, DType::f64);
  Tensor real = Tensor::from({3, 2}, {1, 1, 1, 1, 1, 0}, DType::u8);
  Gradients g = backward(nn::reinforce(log_p, costs, real, 0.5));
  CHECK(g[log_p].to_vector() == std::vector<double>{7.5, 5, 7, 3.5, 4.5, 0});
  CHECK_THROWS_WITH(
      nn::reinforce(log_p, costs, real.reshape({6}), 0),
      doctest::Contains("[reinforce] log_probability, costs and real must be [T, B]: [3, 2], [3, 2] "
                        "and [6] (test_hard.cc:"));
}

}  // namespace hard_test

TEST_CASE("hard attention told to look at the last position does so outside of training") {
  Rng rng(5);
  const auto attention = nn::make_attention("hard", {3, 3, 4, {.last_only = true}}, rng);
  Tensor mask({2, 4}, DType::u8);
  for (int64_t i = 0; i < 8; ++i) mask.set(i, i != 7);  // lengths 4 and 3
  const nn::AttentionMemory memory = attention->prepare(Tensor::uniform({4, 2, 3}, -1, 1, rng), mask);
  const nn::Attended a =
      attention->step(Tensor::uniform({2, 3}, -1, 1, rng), memory, attention->start(memory));
  CHECK(a.weights.to_vector() == std::vector<double>{0, 0, 0, 1, 0, 0, 1, 0});
}
