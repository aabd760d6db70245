#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <common/error.h>
#include <common/json_text.h>
#include <common/spread.h>
#include <common/tell.h>
#include <common/utf8.h>

#include "blame.h"
#include "jobs.h"

namespace lens {
namespace {

// As a table and JSON name the answers.
const char* const kNames[kAnswers] = {"weights", "|dL/dh|", "|dL/dx|", "left out"};
const char* const kKeys[kAnswers] = {"weights", "annotation_gradient", "word_gradient", "left_out"};

// Two answers beside each other, a number for each target word.
struct Pair {
  size_t a, b;
  std::vector<double> ranks = {}, same_first = {};
};

struct Agreement {
  std::vector<Pair> pairs;
  std::vector<double> source_words, chance;  // for each target word
  int64_t undefined = 0;                     // target words with an answer that tells no source words apart

  Agreement() {
    for (size_t a = 0; a < kAnswers; ++a)
      for (size_t b = a + 1; b < kAnswers; ++b) pairs.push_back({a, b});
  }

  void add(const Answers& answers) {
    for (size_t t = 0; t < answers[0].size(); ++t) {
      std::vector<double> ranks;
      for (const Pair& p : pairs) ranks.push_back(rank_correlation(answers[p.a][t], answers[p.b][t]));
      if (std::any_of(ranks.begin(), ranks.end(), [](double r) { return std::isnan(r); })) {
        ++undefined;
        continue;
      }
      auto first = [&](size_t a) {
        return std::max_element(answers[a][t].begin(), answers[a][t].end()) - answers[a][t].begin();
      };
      for (size_t i = 0; i < pairs.size(); ++i) {
        pairs[i].ranks.push_back(ranks[i]);
        pairs[i].same_first.push_back(first(pairs[i].a) == first(pairs[i].b));
      }
      source_words.push_back(static_cast<double>(answers[0][t].size()));
      chance.push_back(1 / source_words.back());
    }
  }
};

double mean(const std::vector<double>& x) { return translator::spread_of(x).mean; }

json to_json(const std::string& model, size_t sentences, const Agreement& found) {
  json out = {{"model", model},
              {"sentences", sentences},
              {"target_words", found.source_words.size()},
              {"undefined", found.undefined},
              {"source_words", mean(found.source_words)},
              {"same_first_by_chance", mean(found.chance)},
              {"agreement", json::array()}};
  for (const Pair& p : found.pairs) {
    const translator::Spread spread = translator::spread_of(p.ranks);
    out["agreement"].push_back({{"a", kKeys[p.a]},
                                {"b", kKeys[p.b]},
                                {"rank_correlation", spread.mean},
                                {"deviation", spread.deviation},
                                {"same_first", mean(p.same_first)}});
  }
  return out;
}

std::string to_text(const std::string& model, size_t sentences, const Agreement& found) {
  std::string out = fmt::format(
      "{}, {} sentence{}: {} target word{}, {:.1f} source words each, </s> included\n\n"
      "  weights   attention that the source word gets\n"
      "  |dL/dh|   gradient that reaches its annotation: the blame of lens explain\n"
      "  |dL/dx|   gradient that reaches its embedding\n"
      "  left out  how far the prediction moves without it\n\n"
      "Do they put the source words in the same order? Spearman's rank correlation (1:\n"
      "the same, 0: no relation, -1: the other way round), mean and standard deviation\n"
      "over target words; and how often both put the same source word first (by chance\n"
      "{:.0f} %).\n\n{:<24}{:>18}{:>18}\n",
      translator::utf8::printable(model), sentences, sentences == 1 ? "" : "s", found.source_words.size(),
      found.source_words.size() == 1 ? "" : "s", mean(found.source_words),
      100 * mean(found.chance), "", "rank correlation", "same first word");
  for (const Pair& p : found.pairs)
    out += fmt::format("  {:<10}{:<12}{:>18}{:>16.0f} %\n", kNames[p.a], kNames[p.b],
                       translator::text_of(translator::spread_of(p.ranks), 1, 2), 100 * mean(p.same_first));
  if (found.undefined > 0)
    out +=
        fmt::format("\nNot counted: {} target word{} with an answer that is the same for all source\n"
                    "words, or not a number.\n",
                    found.undefined, found.undefined == 1 ? "" : "s");
  return out;
}

}  // namespace

int blame(const BlameOptions& o) {
  const translator::Model model = translator::Model::load(o.model);
  const gradus::nn::Seq2Seq& network = network_to_dissect(model);
  const translator::GivenPairs given = translator::read_given_pairs(o.given, {&model});
  gradus::nn::to(*model.network, gradus::DType::f64);
  bool all = given.bad == 0;
  std::vector<Sentence> sentences;
  for (const translator::SentencePair& p : given.pairs) try {
      sentences.push_back(read_sentence(model, p.source_text, p.target_text));
    } catch (const translator::InputError& e) {
      translator::tell("lens: {}: left out: {}\n", translator::InputError::locate(o.given.pairs, p.line),
                       e.what());
      all = false;
    }
  if (sentences.empty()) throw translator::InputError(o.given.pairs, 0, "has no pair that can be looked at");

  std::vector<Answers> answers(sentences.size());
  run_jobs(
      sentences.size(), [&](size_t i, int) { answers[i] = answers_of(network, sentences[i]); }, "sentences");
  Agreement found;
  for (const Answers& a : answers) found.add(a);
  if (found.source_words.empty())
    gradus::fail(
        "lens",
        "there is nothing to compare: for every target word one of the answers is the same for all source "
        "words, as the weights are of an attention that does not look");
  fmt::print("{}", o.json ? json_text::dump(to_json(o.model, sentences.size(), found)) + "\n"
                          : to_text(o.model, sentences.size(), found));
  return all ? 0 : 1;
}

}  // namespace lens
