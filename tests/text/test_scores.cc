// BLEU, chrF2 and chrF++ of drawn corpora against sacreBLEU's: stored for some, and of a thousand where python3
// has sacreBLEU. Intervals and tests that come from the counts.

#include <translator/text/bleu.h>
#include <translator/text/chrf.h>
#include <translator/text/metric.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include <common/json_text.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "../scratch.h"
#include "../skip.h"

using namespace translator;
using Strings = std::vector<std::string>;

namespace {

struct Corpus {
  bool lowercase;
  Strings hypotheses;
  std::vector<Strings> references;
  nlohmann::ordered_json scores;  // by metric: "score" and "signature"
};

// As make_scores.py writes them.
std::vector<Corpus> read_corpora(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::vector<Corpus> out;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::ordered_json j = json_text::parse(line);
    out.push_back({j.at("lowercase"), j.at("hypotheses").get<Strings>(),
                   j.at("references").get<std::vector<Strings>>(), j});
  }
  return out;
}

std::string but_for_version(const std::string& signature) {
  return signature.substr(0, signature.find("|version:"));
}

void must_be_sacrebleus(const std::vector<Corpus>& corpora) {
  size_t partial = 0;
  for (size_t i = 0; i < corpora.size(); ++i) {
    CAPTURE(i);
    const Corpus& c = corpora[i];
    for (const Metric& metric : usual_metrics(c.lowercase)) {
      CAPTURE(metric.name);
      const nlohmann::ordered_json& want = c.scores.at(metric.name);
      const Score score = score_of(metric, count(metric, c.hypotheses, c.references));
      CHECK(score.value == about(want.at("score").get<double>(), 1e-9, 1e-9));
      CHECK(but_for_version(score.signature) == but_for_version(want.at("signature").get<std::string>()));
      partial += score.value > 5 && score.value < 95;
    }
  }
  CHECK(partial > corpora.size());  // of three times as many: they are not all nought
}

}  // namespace

TEST_CASE("scores: sacreBLEU's stored ones of drawn corpora") {
  const auto corpora = read_corpora(TRANSLATOR_GOLDEN_DIR "/scores.json");
  CHECK(corpora.size() == 48);
  must_be_sacrebleus(corpora);
}

TEST_CASE("scores: of each text with each as its reference") {
  const std::vector<std::string> texts = {"a cat, a cat sleeps", "The cat sleeps here, a cat", "", "a b"};
  for (const Metric& metric :
       {bleu_metric({.lowercase = true, .effective_order = true}), chrf_metric({.word_order = 2})}) {
    std::vector<double> expected;
    for (const std::string& text : texts)
      for (const std::string& reference : texts)
        expected.push_back(metric.score(metric.count(text, {reference})));
    CHECK(metric.pairwise(texts) == expected);
    CHECK(expected[1] != expected[4]);
  }
}

TEST_CASE("scores: a thousand drawn corpora through sacreBLEU") {
  if (std::system("python3 -c 'import sacrebleu' >/dev/null 2>&1") != 0)
    return gradus::testing::skipped("python3 has no sacreBLEU here: only its stored scores were compared");
  scratch::Directory scratch;
  const std::string file = scratch.file("scores");
  REQUIRE(std::system(("python3 " TRANSLATOR_GOLDEN_DIR "/make_scores.py 1000 >'" + file + "'").c_str()) ==
          0);
  const auto corpora = read_corpora(file);
  CHECK(corpora.size() == 1000);
  must_be_sacrebleus(corpora);
}

namespace {

// Sentences with a word of four wrong in every one or every second.
CorpusCounts counts_of(const Metric& metric, size_t sentences, size_t wrong_every) {
  Strings hypotheses;
  std::vector<Strings> references;
  for (size_t i = 0; i < sentences; ++i) {
    references.push_back({"un deux trois quatre cinq " + std::to_string(i)});
    hypotheses.push_back(i % wrong_every == 0 ? "un deux trois autre cinq " + std::to_string(i)
                                              : references[i][0]);
  }
  return count(metric, hypotheses, references);
}

}  // namespace

TEST_CASE("intervals: the mean and the spread of what is drawn are those of the sampling distribution") {
  // A metric whose distribution is known: percent of sentences with 1. Of n, each drawn with probability p, it
  // has the mean 100 p and the deviation 100 sqrt(p (1 - p) / n).
  const Metric share{
      .name = "share",
      .settings = "",
      .count =
          [](const std::string& hypothesis, const Strings&) {
            return Counts{hypothesis == "yes", 1};
          },
      .score =
          [](const Counts& sum) { return 100 * static_cast<double>(sum[0]) / static_cast<double>(sum[1]); }};
  Strings hypotheses(400, "no");
  for (size_t i = 0; i < 100; ++i) hypotheses[4 * i] = "yes";
  const CorpusCounts counts = count(share, hypotheses, std::vector<Strings>(400, Strings{""}));
  const Score score = score_of(share, counts, Resampling{.resamples = 4000});
  REQUIRE(score.interval);
  const double deviation = 100 * std::sqrt(0.25 * 0.75 / 400);
  CHECK(score.value == 25);
  CHECK(std::abs(score.interval->mean - 25) < 4 * deviation / std::sqrt(4000));
  CHECK(score.interval->half_width == about(1.96 * deviation, 0.06));
  // As many draws as asked for, the same from the same seed, others from another.
  const auto scores = resampled_scores(share, counts, {.resamples = 50, .seed = 7});
  CHECK(scores.size() == 50);
  CHECK((scores == resampled_scores(share, counts, {.resamples = 50, .seed = 7})));
  CHECK((scores != resampled_scores(share, counts, {.resamples = 50, .seed = 8})));
}

TEST_CASE("intervals: 1/40 of the draws lie on either side") {
  std::vector<double> scores;
  for (int i = 0; i < 1000; ++i) scores.push_back((i * 7919) % 1000);
  const Interval found = interval_of(scores);
  CHECK(found.mean == about(499.5));
  CHECK(found.half_width == about((974 - 25) / 2.0));
  CHECK(interval_of({}).half_width == 0);
}

TEST_CASE("intervals: printed as sacreBLEU prints them") {
  for (const Metric& metric : usual_metrics(false)) {
    const CorpusCounts half = counts_of(metric, 60, 2);
    const Score with = score_of(metric, half, Resampling{.resamples = 100, .seed = 3});
    REQUIRE(with.interval);
    CHECK(with.format().starts_with(fmt::format("{:.2f} (μ = {:.2f} ± {:.2f})", with.value,
                                                with.interval->mean, with.interval->half_width)));
    CHECK(with.signature.starts_with("nrefs:1|bs:100|seed:3|case:mixed|eff:"));
    const Score without = score_of(metric, half);
    CHECK_FALSE(without.interval);
    CHECK(without.signature.starts_with("nrefs:1|case:mixed|eff:"));
    CHECK(without.value == with.value);
    CHECK(score_of(metric, counts_of(metric, 60, 1)).value < with.value);
    // A part of the corpus has the scores of that part.
    std::vector<size_t> right;
    for (size_t i = 1; i < 60; i += 2) right.push_back(i);
    CHECK(score_of(metric, half.some(right)).value == about(100));
    CHECK(score_of(metric, half.some({})).value == 0);
    CHECK_FALSE(score_of(metric, count(metric, {"a"}, {{"b"}}), Resampling()).interval);  // nothing but 0
  }
}

TEST_CASE("paired bootstrap: sacreBLEU's intervals and p, within what two samplings differ by") {
  std::ifstream file(TRANSLATOR_GOLDEN_DIR "/paired.json");
  REQUIRE(file);
  int tested = 0, equal = 0;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::ordered_json j = json_text::parse(line);
    const auto references = j.at("references").get<std::vector<Strings>>();
    for (const Metric& metric : usual_metrics(false)) {
      const nlohmann::ordered_json& want = j.at(metric.name);
      auto number = [&](const char* name) { return want.at(name).get<double>(); };
      const CorpusCounts a = count(metric, j.at("a").get<Strings>(), references),
                         b = count(metric, j.at("b").get<Strings>(), references);
      const PairedScores found = paired_scores(metric, a, b);
      CAPTURE(found.a.value);
      CAPTURE(found.b.value);
      CHECK(found.a.value == about(number("score_a"), 1e-9));
      CHECK(found.b.value == about(number("score_b"), 1e-9));
      CHECK(but_for_version(found.a.signature) == but_for_version(want.at("signature").get<std::string>()));
      REQUIRE(found.a.interval);
      REQUIRE(found.b.interval);
      // Half of 95 % is 1.96 deviations, and a mean of 1000 draws deviates by 1/sqrt(1000) of one.
      const double deviation = number("half_width_a") / 1.96;
      CHECK(std::abs(found.a.interval->mean - number("mean_a")) < 5 * deviation * std::sqrt(2 / 1000.0));
      CHECK(found.a.interval->half_width == about(number("half_width_a"), 0.15));
      CHECK(found.b.interval->half_width == about(number("half_width_b"), 0.15));
      if (found.a.value == found.b.value) {
        CHECK_FALSE(found.p);
        ++equal;
        continue;
      }
      REQUIRE(found.p);
      const double p = number("p");
      CHECK(std::abs(*found.p - p) < 5 * std::sqrt(2 * p * (1 - p) / 1000));
      ++tested;
    }
  }
  CHECK(tested == 21);
  CHECK(equal == 3);
}

TEST_CASE("paired bootstrap: the same sentences for both, so that a difference in all of them is no chance") {
  // b has one point of 20 more in each sentence, but the sentences differ by far more.
  const Metric sum{
      .name = "sum",
      .settings = "",
      .count =
          [](const std::string& text, const Strings&) {
            return Counts{std::stoll(text), 20};
          },
      .score = [](const Counts& c) { return 100 * static_cast<double>(c[0]) / static_cast<double>(c[1]); }};
  Strings a, b;
  for (int i = 0; i < 40; ++i) {
    a.push_back(std::to_string(i % 2 ? 0 : 19));
    b.push_back(std::to_string(i % 2 ? 1 : 20));
  }
  const std::vector<Strings> references(40, Strings{""});
  const PairedScores found = paired_scores(sum, count(sum, a, references), count(sum, b, references));
  REQUIRE(found.p);
  CHECK(*found.p == about(1 / 1001.0));
  CHECK(found.a.interval->half_width > 10);
  CHECK(found.b.value - found.a.value == about(5));
}
