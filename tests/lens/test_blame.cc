// `lens blame`: what is said of how much each source word matters, and how it is compared.

#include <cmath>

#include <gradus/nn/module.h>

#include "../about.h"
#include "../pieces.h"
#include "../quick_doctest.h"
#include "blame/blame.h"
#include "norms.h"
#include "subjects.h"

using namespace gradus;
using lens::Answer, lens::Answers, lens::Subject;

namespace {

const std::vector<std::vector<double>>& of(const Answers& answers, Answer a) {
  return answers[static_cast<size_t>(a)];
}

// Half of what two steps' probabilities differ by.
double distance(const lens::Step& a, const lens::Step& b) {
  const Tensor &p = a.probabilities.value(), &q = b.probabilities.value();
  REQUIRE(p.numel() == q.numel());
  double sum = 0;
  for (int64_t k = 0; k < p.numel(); ++k) sum += std::abs(p.at(k) - q.at(k)) / 2;
  return sum;
}

}  // namespace

TEST_CASE("blame: the rank correlation, by hand") {
  CHECK(lens::rank_correlation({1, 2, 3}, {10, 20, 1000}) == about(1, 1e-15));
  CHECK(lens::rank_correlation({1, 2, 3}, {5, 0, -1}) == about(-1, 1e-15));
  // 1 - 6 sum d^2 / (n (n^2 - 1)), where no two are equal: ranks 2, 1, 5, 3, 4.
  CHECK(lens::rank_correlation({1, 2, 3, 4, 5}, {2, 1, 5, 2.5, 4.5}) ==
        about(1 - 6.0 * (1 + 1 + 4 + 1 + 1) / (5 * 24), 1e-15));
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
  CHECK(lens::rank_correlation({0, 7, 7, 9}, {1, 2, 3, 4}) == about(std::sqrt(0.9), 1e-15));
  CHECK(std::isnan(lens::rank_correlation({1, 1, 1}, {1, 2, 3})));
  CHECK(std::isnan(lens::rank_correlation({1}, {2})));
  CHECK(std::isnan(lens::rank_correlation({1, 2, NAN}, {1, 2, 3})));
}

TEST_CASE("blame: weights and gradients are those of the sentence, words left out are not there") {
  for (const char* attention : {"bahdanau", "multihead"}) {
    Subject s = lens::test::subject({.attention = attention});
    const Answers answers = lens::answers_of(s.network(), s);
    lens::Dissection d = s.dissect();
    const lens::SentenceTrace trace = lens::differentiate(d);
    for (const auto& answer : answers) {
      REQUIRE(answer.size() == 4);  // three words and </s>
      for (const auto& row : answer) REQUIRE(row.size() == 5);
    }
    Parameter* embedding = nullptr;
    for (const NamedParameter& p : nn::named_parameters(*s.model.network))
      if (p.name == "encoder.embedding.weight") embedding = p.parameter;
    REQUIRE(embedding != nullptr);
    for (size_t t = 0; t < 4; ++t) {
      CHECK(sum_of(of(answers, Answer::weights)[t]) == about(1, 1e-6));  // they went through floats
      const lens::StepGradients& g = trace.gradients[t];
      CHECK(of(answers, Answer::annotation)[t] == lens::row_norms(g.full));
      // Word 1 moved along its gradient: the loss changes by its length.
      const Tensor direction = g.words.row(1);
      const double length = of(answers, Answer::word)[t][1], step = 1e-5;
      const int64_t E = direction.numel(), id = s.source_ids[1];
      auto loss = [&](double by) {
        auto move = [&](double x) {
          embedding->update([&](const Tensor& w) {
            for (int64_t i = 0; i < E; ++i)
              w.set(id * E + i, w.at(id * E + i) + x * direction.at(i) / length);
          });
        };
        move(by);
        const double out = lens::differentiate(d).steps[t].loss.item();
        move(-by);
        return out;
      };
      CHECK((loss(step) - loss(-step)) / (2 * step) == about(length, 1e-6));
    }
    // Without "cat", without </s>.
    for (size_t j : {1, 4}) {
      std::vector<int32_t> source = s.source_ids;
      source.erase(source.begin() + static_cast<long>(j));
      const lens::SentenceTrace without = lens::differentiate({s.network(), source, s.target_ids});
      for (size_t t = 0; t < 4; ++t)
        CHECK(of(answers, Answer::left_out)[t][j] ==
              about(distance(trace.steps[t], without.steps[t]), 1e-12));
    }
  }
}

TEST_CASE("blame: an attention that does not look says nothing, and is not counted as agreement") {
  Subject s = lens::test::subject({.attention = "uniform"});
  const Answers answers = lens::answers_of(s.network(), s);
  for (size_t t = 0; t < 4; ++t) {
    CHECK(of(answers, Answer::weights)[t] == std::vector<double>(5, of(answers, Answer::weights)[t][0]));
    CHECK(std::isnan(lens::rank_correlation(of(answers, Answer::weights)[t], of(answers, Answer::word)[t])));
    CHECK(of(answers, Answer::word)[t][0] > 0);
  }
}

TEST_CASE("blame: pieces count as the words that they make") {
  if (gradus::testing::no_pieces()) return;
  Subject s = lens::test::subject({.subwords = true});
  const Answers answers = lens::answers_of(s.network(), s);
  REQUIRE(s.source_ids.size() > s.source.words.size());
  for (const auto& answer : answers) {
    REQUIRE(answer.size() == s.target.words.size());
    for (const auto& row : answer) CHECK(row.size() == s.source.words.size());
  }
  // "cat" leaves with all of its pieces; the distances of a target word's pieces are added.
  const lens::SentenceTrace whole = lens::differentiate(s.dissect());
  std::vector<int32_t> source;
  for (size_t i = 0; i < s.source_ids.size(); ++i)
    if (s.source.word_of[i] != 1) source.push_back(s.source_ids[i]);
  const lens::SentenceTrace without = lens::differentiate({s.network(), source, s.target_ids});
  double chat = 0;
  for (size_t t = 0; t < whole.steps.size(); ++t)
    if (s.target.word_of[t] == 1) chat += distance(whole.steps[t], without.steps[t]);
  CHECK(of(answers, Answer::left_out)[1][1] == about(chat, 1e-12));
}
