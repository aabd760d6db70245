// Chorowski et al. 2015: places that look alike, told apart by where attention was before.

#include <fmt/core.h>

#include <cmath>

#include "chart.h"
#include "experiment.h"

namespace papers {
namespace {

const Words kScores = {"bahdanau", "location-aware"};
constexpr int kTrained = 20, kMany = 4;  // letters of a sequence, and repeats of one in the longer ones

std::vector<Run> repeats_runs(bool quick, int seeds) {
  std::vector<Run> out;
  for (int seed = 1; seed <= seeds; ++seed)
    for (const std::string& score : kScores)
      out.push_back(gallery_run({{"score", score}}, {"gallery-repeats", "--score", score}, seed, quick,
                                (quick ? 0.06 : 1) * (score == "bahdanau" ? 18 : 32)));
  return out;
}

// What the tests of this many letters, one of them so often, found: "wrong" or "failed".
std::vector<double> of_tests(const std::vector<Log>& logs, const std::string& score, int length, int repeats,
                             const std::string& name) {
  std::vector<double> out;
  for (const Log& log : where(logs, {{"score", score}}))
    for (const json& line : log.lines)
      if (line.at("event") == "test" && line.at("length") == length && line.at("repeats") == repeats)
        out.push_back(line.at(name).is_number() ? line.at(name).get<double>() : NAN);
  return out;
}

// The mean share of wrong guesses among R things, of which those that were right before are known: 1 - H_R / R.
double guessing(int R) {
  double harmonic = 0;
  for (int i = 1; i <= R; ++i) harmonic += 1.0 / i;
  return 1 - harmonic / R;
}

// What the page says before anything is measured.
Page repeats_words() {
  Page page;
  page.title = "Places that look alike";
  page.claim =
      "Chorowski, Bahdanau, Serdyuk, Cho and Bengio, *Attention-based models for speech recognition* (2015, "
      "arXiv:1506.07503), find that a score made of content gives fragments that sound alike the same weight, "
      "wherever they stand; long utterances fail by it. They convolve the weights of the step before into the "
      "score: 18 % phoneme errors on TIMIT, and 20 % when utterances are repeated to ten times the length.";
  page.theory =
      "Letters are written down in order, one of them stands at R places. An annotation sees its letter and "
      "the one before it, and nothing of where they stand. So content can answer \"what follows X\" where X "
      "stands once. Where it stands at R places, all have the same score, and what follows can only be "
      "guessed: who remembers what is written already errs in 1 - (1 + 1/2 + ... + 1/R) / R of the cases, "
      "who does not in 1 - 1/R. The weights of the step before say which place it was; the next one is "
      "beside it.";
  page.differences = {
      "Letters in place of speech, 10 to 20 in training, with one letter at up to half of the places. It is "
      "made to show the cause alone: all other letters differ.",
      "The encoder is a window of two embeddings. The paper's is recurrent and can learn to count; that this "
      "does not carry beyond the lengths of training is its point. The decoder sees nothing but the "
      "letters written before (Luong's order, no input feeding), in both cases the same.",
      "Wrong letters are counted with all letters before them given. A sequence is exact if all are right, "
      "which is so exactly where it is when written freely: then both read the same letters.",
      "4000 updates of Adam at 0.003, 32 sequences each; 8 filters over 5 weights (the library's default). "
      "Rate and number were chosen on seed 101, none of the page's: 500 updates are enough for the location, "
      "and content still improves at 6000, towards the guess that remembers.",
      "`gallery-repeats --score bahdanau` draws the weights over a sequence."};
  return page;
}

Page repeats_page(const std::vector<Log>& logs) {
  Page page = repeats_words();
  const std::vector<int> repeats = {1, 2, 3, 4, 6, 8}, lengths = {kTrained, 30, 40, 50};
  Table wrong{
      "Wrong letters among those that follow the repeated one, in per cent, by how many of the 20 places it "
      "has.",
      {"score"},
      {}};
  Table failed{
      "Sequences that are not exact, of 500 (`--quick`: 100), in per cent, likewise.", {"score"}, {}};
  Table longer{"Wrong letters after one that stands at 4 places, in per cent, by the length of the sequence.",
               {"score"},
               {}};
  Panel by_repeats{.title = "Wrong after the repeated letter, %",
                   .x_name = "places where it stands, among 20",
                   .factor = 100};
  for (int R : repeats) {
    by_repeats.places.push_back(std::to_string(R));
    for (Table* table : {&wrong, &failed}) table->head.push_back(std::to_string(R));
  }
  for (int length : lengths) longer.head.push_back(std::to_string(length));
  for (const std::string& score : kScores) {
    for (Table* table : {&wrong, &failed, &longer}) table->rows.push_back({score});
    by_repeats.series.push_back({score == kScores[0] ? "content" : "location", {}});
    for (int R : repeats) {
      const std::vector<double> shares = of_tests(logs, score, kTrained, R, "wrong");
      by_repeats.series.back().values.push_back(shares);
      wrong.rows.back().push_back(shown(shares, 100));
      failed.rows.back().push_back(shown(of_tests(logs, score, kTrained, R, "failed"), 100));
    }
    for (int length : lengths)
      longer.rows.back().push_back(shown(of_tests(logs, score, length, kMany, "wrong"), 100));
  }
  wrong.rows.push_back({"a guess that remembers"});
  by_repeats.series.push_back({"a guess", {}});
  for (int R : repeats) {
    wrong.rows.back().push_back(shown({guessing(R)}, 100));
    by_repeats.series.back().values.push_back({guessing(R)});
  }
  const bool has_longer = !of_tests(logs, kScores[0], lengths.back(), kMany, "wrong").empty();
  page.tables = {wrong, failed};
  if (has_longer) page.tables.push_back(longer);
  page.svg_text =
      "Share of wrong letters after the repeated one, by the number of its places, for both scores";
  page.svg = chart_svg(page.svg_text, {by_repeats});

  const double alone = translator::spread_of(of_tests(logs, kScores[0], kTrained, 1, "wrong")).mean;
  page.findings.push_back(
      {alone < 0.05,
       fmt::format("Where every letter stands once, content is enough: {:.1f} % wrong.", 100 * alone)});
  std::vector<Measured> by_content;
  for (int R : repeats)
    by_content.push_back(
        {fmt::format("{} place{}", R, R == 1 ? "" : "s"), of_tests(logs, kScores[0], kTrained, R, "wrong")});
  page.find("By content, per cent wrong: ", by_content);
  for (int R : {2, 4, 8})
    page.find(fmt::format("{} places, per cent wrong: ", R),
              {{kScores[1], of_tests(logs, kScores[1], kTrained, R, "wrong")},
               {kScores[0], of_tests(logs, kScores[0], kTrained, R, "wrong")}});
  if (!has_longer) return page;
  page.find("By content, 4 places, per cent wrong: ",
            {{"20 letters", of_tests(logs, kScores[0], kTrained, kMany, "wrong")},
             {"50 letters", of_tests(logs, kScores[0], lengths.back(), kMany, "wrong")}});
  const double far = translator::spread_of(of_tests(logs, kScores[1], lengths.back(), kMany, "failed")).mean;
  page.findings.push_back(
      {far < 0.1, fmt::format("By location, sequences two and a half times longer than any in training are "
                              "written as well: {:.1f} % are not exact.",
                              100 * far)});
  return page;
}

}  // namespace

const Experiment kRepeats = {"repeats", "equal places: content alone cannot tell them apart, location can",
                             repeats_runs, repeats_page};

}  // namespace papers
