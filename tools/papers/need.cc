// Of all source words only some are needed at a step: what weights from outside, learned, equal and no weights
// bring, and what a learned attention loses that may only look at a few.

#include <fmt/core.h>

#include "chart.h"
#include "experiment.h"
#include "translations.h"

namespace papers {
namespace {

// An attention, and the name it has on the page.
struct Kind {
  std::string name, shown;
};
const std::vector<Kind> kKinds = {
    {"none", "none"}, {"uniform", "uniform"}, {"bahdanau", "learned"}, {"oracle", "oracle"}};
constexpr int kMostWords = 4;

// After all words: 1 to 4, then the last position alone.
std::vector<Words> looks() {
  std::vector<Words> out = {{}};
  for (int k = 1; k <= kMostWords; ++k) out.push_back({"--top-k", std::to_string(k)});
  out.push_back({"--last-only"});
  return out;
}

std::vector<Run> need_runs(bool quick, int seeds) {
  std::vector<Trial> trials;
  for (const Kind& kind : kKinds) {
    if (quick && kind.name == "uniform") continue;
    Trial trial{.setting = {{"attention", kind.name}}, .train = {"--attention", kind.name}};
    if (kind.name == "bahdanau") {
      trial.evaluations = looks();
      trial.seconds = 18;
    }
    trials.push_back(trial);
  }
  return runs_of(trials, quick, seeds);
}

// What the page says before anything is measured.
Page need_words() {
  Page page;
  page.title = "How many source words a step needs";
  page.claim =
      "Popular articles on attention say that a model over words needs only some of its inputs at a step, and "
      "that weights given from outside (\"oracle\") beat a translator without attention. Bahdanau, Cho and "
      "Bengio, *Neural machine translation by jointly learning to align and translate* (2014, "
      "arXiv:1409.0473), let a network learn the weights.";
  page.theory =
      "None: one vector for a whole sentence. Uniform: the mean of all annotations, to which every word "
      "gives as much, wherever it stands; but the same at every step, so one vector as well. Learned: "
      "another mean at every step. Oracle: the gold link of each word, which no learned weights know "
      "better. So one expects none < uniform < learned ≤ oracle, the large step being the one to learned "
      "weights. Most French words have one English word, some two: once trained, the one or two largest "
      "weights should do. A decoder that learned to attend and then sees the last annotation alone has "
      "less than one that learned to live on one vector.";
  page.differences = {
      "No paper has this table; it checks what is said about attention. The corpus is the embedded one, "
      "its test sentences are 1000; sizes are those of the command above. Exact match and BLEU of greedy "
      "translations.",
      "The oracle is given the links of the reference while it translates: it also learns of the reference's "
      "length and order, so that it is a bound and no translator. Its links are those of the grammar.",
      "Only the learned attention is cut, and only at test time: `translator evaluate model --embedded --top-k "
      "2`, `--last-only`. What stays is divided by its sum. The last position is the end of the sentence, "
      "whose forward state has read all words.",
      "All have as many units and updates; those without attention would do better with more of both. "
      "Number of pairs, epochs, batch size and learning rate were chosen on seed 101, which is none of the "
      "page's, so that attention is learnt in eight seconds: 4000 pairs, four epochs, the usual batches "
      "and rate gave 7.5 BLEU. What theory lets expect of the mean was worded anew when the result was known."};
  return page;
}

Page need_page(const std::vector<Log>& logs) {
  Page page = need_words();
  Table kinds{
      "Trained with each kind of weights: translated exactly in per cent, BLEU, perplexity, alignment error.",
      {"weights", "exact match", "BLEU", "perplexity", "AER"},
      {}};
  Panel trained{.title = "Weights of each kind, and the last word alone, %",
                .x_name = "weights",
                .bars = true,
                .factor = 100};
  trained.series = {{"exact match", {}}, {"BLEU", {}}};
  std::vector<Measured> exact, bleu;
  for (const Kind& kind : kKinds) {
    const std::vector<Log> all = nth_line(where(logs, {{"attention", kind.name}}), 0);
    if (all.empty()) continue;  // quick, or interrupted
    exact.push_back({kind.shown, results(all, "exact_match")});
    bleu.push_back({kind.shown, results(all, "bleu")});
    kinds.rows.push_back({kind.shown, cell(all, "exact_match"), cell(all, "bleu"), cell(all, "perplexity"),
                          kind.name == "none" ? "-" : cell(all, "aer")});
    trained.places.push_back(kind.shown);
    trained.series[0].values.push_back(exact.back().values);
    trained.series[1].values.push_back(hundredths(bleu.back().values));
  }

  Table cuts{"The learned weights, cut off when the trained model is tested.",
             {"looks at", "exact match", "BLEU", "perplexity"},
             {}};
  Panel cut{
      .title = "Learned weights, cut off at test time, %", .x_name = "source words looked at", .factor = 100};
  cut.series = {{"exact match", {}}, {"BLEU", {}}};
  std::vector<Measured> left;  // BLEU of the last position, of 1, 2, ... words, of all
  const std::vector<Log> learned = where(logs, {{"attention", "bahdanau"}});
  for (int look = 0; look <= kMostWords + 1; ++look) {
    // Behind the evaluation with all words stand those with 1, 2, ... and that with the last.
    const bool last = look == 0, all = look == kMostWords + 1;
    const std::vector<Log> some = nth_line(learned, static_cast<size_t>(last  ? kMostWords + 1
                                                                        : all ? 0
                                                                              : look));
    const std::string name = last ? "the last" : all ? "all" : fmt::format("{} largest", look);
    left.push_back({name, results(some, "bleu")});
    Panel& panel = last ? trained : cut;
    panel.places.push_back(last ? "last alone" : all ? name : std::to_string(look));
    panel.series[0].values.push_back(results(some, "exact_match"));
    panel.series[1].values.push_back(hundredths(left.back().values));
    cuts.rows.push_back({name, cell(some, "exact_match"), cell(some, "bleu"), cell(some, "perplexity")});
  }
  page.tables = {kinds, cuts};
  page.svg_text =
      "Exact match and BLEU with no, uniform, learned and oracle weights, and of the learned weights where "
      "only some source words are looked at";
  page.svg = chart_svg(page.svg_text, {trained, cut});

  const Measured fixed{"none", results(nth_line(where(logs, {{"attention", "none"}}), 0), "bleu")};
  page.find("BLEU: ", bleu, {1, 1});
  page.find("Per cent exact: ", exact);
  page.find("The last annotation alone is worse than a model trained on one vector, BLEU: ",
            {left.front(), fixed}, {1, 1});
  if (bleu.size() < kKinds.size()) return page;  // quick: too little learnt for more
  for (Finding* order : {&page.findings[0], &page.findings[1]})
    if (!order->holds && rising({bleu[1], bleu[2], bleu[3]}).holds)
      order->text +=
          " The mean of all annotations does not change from step to step: it is one vector, of as many "
          "numbers as the one of a model without attention.";
  const double whole = translator::spread_of(left.back().values).mean;
  int enough = 0;
  for (int k = kMostWords; k >= 1; --k)
    if (whole - translator::spread_of(left[static_cast<size_t>(k)].values).mean < 1) enough = k;
  page.findings.push_back({enough == 1 || enough == 2,
                           enough == 0
                               ? fmt::format("Up to {} words cost a BLEU point or more.", kMostWords)
                               : fmt::format("{} word{} at a step cost{} less than one BLEU point.", enough,
                                             enough == 1 ? "" : "s", enough == 1 ? "s" : "")});
  return page;
}

}  // namespace

const Experiment kNeed = {"need", "which source words a step needs: weights of four kinds, and top-k",
                          need_runs, need_page};

}  // namespace papers
