// Several models as one.

#include <cmath>
#include <map>

#include <gradus/nn/ensemble.h>
#include <gradus/nn/search.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/parallel.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "small_models.h"

namespace ensembles {

using namespace gradus;
using small_models::batch;
using testing::error_of;
namespace nn = gradus::nn;

// A GRU with each order, an LSTM without attention and a Transformer, all of 8 target words.
std::vector<std::unique_ptr<nn::TranslationModel>> kinds() {
  std::vector<std::unique_ptr<nn::TranslationModel>> out;
  for (const char* attention : {"bahdanau", "general", "none"}) {
    nn::Seq2SeqConfig c = small_models::small(attention);
    if (std::string(attention) == "none") c.rnn.cell = {nn::CellKind::lstm};
    Rng rng(out.size() + 1);
    out.push_back(std::make_unique<nn::Seq2Seq>(c, rng));
  }
  Rng rng(7);
  out.push_back(std::make_unique<nn::TransformerSeq2Seq>(small_models::small_transformer(), rng));
  return out;
}

using Weighted = std::vector<std::pair<const nn::TranslationModel*, double>>;

std::unique_ptr<nn::Generator> together(const Weighted& models, nn::EnsembleSpace space) {
  std::vector<nn::EnsembleMember> members;
  for (const auto& [model, weight] : models) members.push_back({model->generator(), weight});
  return nn::ensemble_of(std::move(members), space);
}

std::vector<std::vector<nn::Hypothesis>> found(const nn::Generator& g, const nn::SearchOptions& o) {
  return nn::translate(g, batch().source, batch().source_lengths, o);
}

// p of each word of the first step, by sentence, and the weights.
struct FirstStep {
  std::map<int64_t, std::vector<double>> p, weights;
};
FirstStep first_step(const nn::Generator& g) {
  FirstStep out;
  nn::SearchOptions o{.max_length = 1, .weights = true};
  o.watch = [&](const nn::SearchStep& s) {
    double sum = 0;
    std::vector<double>& p = out.p[s.sentence];
    for (int64_t v = 0; v < 8; ++v) sum += p.emplace_back(std::exp(s.logits.f32()[v]));
    for (double& each : p) each /= sum;
    if (s.weights.defined()) out.weights[s.sentence] = s.weights.to(DType::f64).to_vector();
    return true;
  };
  found(g, o);
  return out;
}

TEST_CASE("an ensemble's words have the mean of the members' probabilities, or of their logarithms") {
  const auto all = kinds();
  const Weighted mixed = {{all[0].get(), 1}, {all[2].get(), 2}, {all[3].get(), 5}};
  std::vector<FirstStep> alone;
  for (const auto& [model, weight] : mixed) alone.push_back(first_step(*model->generator()));
  const FirstStep mean = first_step(*together(mixed, nn::EnsembleSpace::probability));
  const FirstStep geometric = first_step(*together(mixed, nn::EnsembleSpace::log_probability));
  for (int64_t b = 0; b < 3; ++b) {
    double sum = 0;
    std::vector<double> product;
    for (size_t v = 0; v < 8; ++v) {
      double p = 0, log_p = 0;
      for (size_t m = 0; m < 3; ++m) {
        p += mixed[m].second / 8 * alone[m].p[b][v];
        log_p += mixed[m].second / 8 * std::log(alone[m].p[b][v]);
      }
      CHECK(mean.p.at(b)[v] == about(p, 1e-6));
      sum += product.emplace_back(std::exp(log_p));
    }
    for (size_t v = 0; v < 8; ++v) CHECK(geometric.p.at(b)[v] == about(product[v] / sum, 1e-6));
    // The LSTM has no attention: the mean is of the two others.
    for (size_t s = 0; s < 4; ++s)
      CHECK(mean.weights.at(b)[s] == about((alone[0].weights[b][s] + alone[2].weights[b][s]) / 2, 1e-6));
  }
}

TEST_CASE("an ensemble of one is the model to the bit, of a model with itself the model") {
  for (const auto& model : kinds())
    for (auto space : {nn::EnsembleSpace::probability, nn::EnsembleSpace::log_probability})
      for (int64_t beam : {1, 3}) {
        const nn::SearchOptions o{.beam_size = beam, .max_length = 6, .weights = true};
        const auto alone = found(*model->generator(), o);
        const auto one = found(*together({{model.get(), 3}}, space), o);
        const auto twice = found(*together({{model.get(), 1}, {model.get(), 2}}, space), o);
        for (int64_t b = 0; b < 3; ++b)
          for (size_t i = 0; i < alone[b].size(); ++i) {
            CHECK(one[b][i].tokens == alone[b][i].tokens);
            CHECK(one[b][i].log_probability == alone[b][i].log_probability);
            CHECK(one[b][i].weights == alone[b][i].weights);
            CHECK(twice[b][i].tokens == alone[b][i].tokens);
            CHECK(twice[b][i].log_probability == about(alone[b][i].log_probability, 1e-6));
          }
      }
}

TEST_CASE("an ensemble is the same with threads, and whoever stands beside a sentence") {
  ThreadPool pool(2);
  const auto all = kinds();
  // Of members that are themselves so to the bit.
  const auto g = together({{all[0].get(), 1}, {all[1].get(), 1}}, nn::EnsembleSpace::probability);
  const int64_t B = 12;
  Tensor source({4, B}, DType::i32), lengths({B}, DType::i32);
  for (int64_t i = 0; i < 4 * B; ++i) source.i32()[i] = static_cast<int32_t>(4 + i % 5);
  lengths.fill(4);
  nn::SearchOptions o{.beam_size = 2, .max_length = 6};
  const auto one = nn::translate(*g, source, lengths, o);
  o.pool = &pool;
  const auto two = nn::translate(*g, source, lengths, o);
  for (int64_t b = 0; b < B; ++b) {
    Tensor own({4, 1}, DType::i32);
    for (int64_t s = 0; s < 4; ++s) own.i32()[s] = source.i32()[s * B + b];
    const auto alone = nn::translate(*g, own, Tensor::from_ids({1}, {4}), {.beam_size = 2, .max_length = 6});
    CHECK(one[b][0].tokens == two[b][0].tokens);
    CHECK(one[b][0].log_probability == two[b][0].log_probability);
    CHECK(one[b][0].log_probability == alone[0][0].log_probability);
  }
}

TEST_CASE("what cannot be an ensemble is an error") {
  const auto all = kinds();
  CHECK(error_of([&] {
          nn::ensemble_of({}, nn::EnsembleSpace::probability);
        }).find("[ensemble] there must be a member") == 0);
  CHECK(error_of([&] {
          together({{all[0].get(), 0}}, nn::EnsembleSpace::probability);
        }).find("[ensemble] weights must be above 0: 0") == 0);
  Rng rng(1);
  CHECK(error_of([&] {
          const nn::Seq2Seq other(small_models::small("general"), rng);
          nn::Seq2SeqConfig larger = small_models::small("general");
          larger.target_vocabulary = 9;
          const nn::Seq2Seq nine(larger, rng);
          found(*together({{&other, 1}, {&nine, 1}}, nn::EnsembleSpace::probability), {});
        }).find("[ensemble] members have vocabularies of 8 and 9 words") == 0);
}

TEST_CASE("sentences join an ensemble only where every member takes them") {
  const auto all = kinds();
  const auto g = together({{all[0].get(), 1}, {all[2].get(), 1}}, nn::EnsembleSpace::probability);
  nn::SearchOptions by_two;
  by_two.together = 2;
  const auto some = found(*g, by_two), at_once = found(*g, {});
  for (size_t b = 0; b < at_once.size(); ++b) CHECK(some[b][0].tokens == at_once[b][0].tokens);
}

}  // namespace ensembles
