// What is measured at a validation.

#include <cmath>

#include <gradus/nn/optimizer.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "small.h"

using namespace translator;

TEST_CASE("word losses add up to the loss, whatever the network") {
  std::vector<SentencePair> some = runs::pairs("valid", 12);
  for (const char* kind : {"gru", "transformer"})
    for (const char* attention : {"bahdanau", "general", "none"}) {
      CAPTURE(kind);
      CAPTURE(attention);
      Model model = runs::small_model(some, attention, kind);
      std::vector<EncodedPair> encoded = encode(some, model);
      gradus::nn::Seq2SeqBatch batch = make_batch(encoded, {3, 0, 7, 5});
      gradus::Tensor losses = model.network->word_losses(batch);
      REQUIRE(losses.shape() == batch.target_out.shape());
      double sum = 0;
      for (int64_t i = 0; i < losses.numel(); ++i) {
        bool padding = batch.target_out.i32()[i] == gradus::nn::kPad;
        CHECK((losses.at(i) == 0) == padding);
        sum += losses.at(i);
      }
      gradus::NoGrad guard;
      CHECK(sum == about(model.network->loss(batch).nll, 1e-5));
    }
}

TEST_CASE("the worst sentences are the worst, worst first") {
  std::vector<SentencePair> some = runs::pairs("valid", 40);
  Model model = runs::small_model(some);
  std::vector<WorstSentence> three = worst_sentences(model, some, 30, 3, {2}),
                             all = worst_sentences(model, some, 30, 100, {});
  REQUIRE(three.size() == 3);
  REQUIRE(all.size() == 30);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(three[i].index == all[i].index);
    CHECK(three[i].loss == about(all[i].loss));
  }
  for (size_t i = 1; i < all.size(); ++i) CHECK(all[i].loss <= all[i - 1].loss);
  // Each loss is that sentence's own.
  std::vector<EncodedPair> encoded = encode(some, model);
  for (const WorstSentence& w : three) {
    gradus::NoGrad guard;
    gradus::CrossEntropy alone = model.network->loss(make_batch(encoded, {w.index}));
    CHECK(alone.tokens == w.tokens);
    CHECK(w.loss == about(alone.nll / static_cast<double>(alone.tokens), 1e-4));
  }
}

TEST_CASE("a step is measured parameter by parameter") {
  std::vector<SentencePair> some = runs::pairs("valid", 12);
  Model model = runs::small_model(some);
  StepMeter meter(*model.network);
  CHECK(meter.take().step == -1);
  std::vector<EncodedPair> encoded = encode(some, model);
  gradus::Gradients grads = gradus::backward(model.network->loss(make_batch(encoded, {0, 1, 2})).loss);
  double all = gradus::nn::grad_norm(grads);
  auto parameters = gradus::nn::named_parameters(*model.network);
  gradus::nn::StateDict before;
  for (const auto& p : parameters) before.emplace_back(p.name, p.parameter->value().to(gradus::DType::f64));
  // Plain gradient descent: the update is the learning rate times the gradient.
  gradus::nn::SGD sgd({.lr = 0.25});
  meter.begin(17, grads);
  sgd.step(*model.network, grads);
  meter.end();
  StepNorms n = meter.take();
  CHECK(n.step == 17);
  REQUIRE(n.gradient.size() == parameters.size());
  double squares = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    CAPTURE(parameters[i].name);
    CHECK(meter.parameters()[i].first == parameters[i].name);
    double weight = 0, update = 0;
    for (int64_t k = 0; k < before[i].second.numel(); ++k) {
      weight += std::pow(before[i].second.at(k), 2);
      update += std::pow(parameters[i].parameter->value().at(k) - before[i].second.at(k), 2);
    }
    CHECK(n.weight[i] == about(std::sqrt(weight), 1e-5));
    CHECK(n.update[i] == about(std::sqrt(update), 1e-5));
    CHECK(n.update[i] == about(0.25 * n.gradient[i], 1e-3));
    squares += n.gradient[i] * n.gradient[i];
  }
  CHECK(std::sqrt(squares) == about(all, 1e-5));
  CHECK(meter.take().step == -1);
}

TEST_CASE("a probe has a row of weights for each word it says") {
  std::vector<SentencePair> some = runs::pairs("valid", 12);
  Model model = runs::small_model(some);
  ProbeResult p = probe(model, some[2]);
  CHECK(p.source.size() == some[2].source.size() + 1);
  CHECK(p.source.back() == "</s>");
  REQUIRE(p.weights.size() == p.target.size());
  for (const auto& row : p.weights) {
    REQUIRE(row.size() == p.source.size());
    CHECK(sum_of(row) == about(1, 1e-5));
  }
  CHECK(probe(runs::small_model(some, "none"), some[2]).weights.empty());
}
