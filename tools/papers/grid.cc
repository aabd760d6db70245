// Luong et al. 2015, tables 4 and 6: scores, windows and input feeding; translations beside alignments.

#include <algorithm>

#include "chart.h"
#include "experiment.h"
#include "translations.h"

namespace papers {
namespace {

// A row of the paper's tables.
struct GridRow {
  std::string attention;  // as the translator calls it
  std::string shown;      // and the picture
  bool feeding;
  bool quick;
};
const std::vector<GridRow> kGridRows = {{"none", "none", false, true},
                                        {"dot", "dot", true, false},
                                        {"general", "general", true, false},
                                        {"concat", "concat", true, false},
                                        {"concat-identity", "identity", true, false},
                                        {"location", "location", true, false},
                                        {"local-m", "local-m", true, false},
                                        {"local-p", "local-p", true, false},
                                        {"location", "location", false, true},
                                        {"general", "general", false, false},
                                        {"local-p", "local-p", false, false}};

std::vector<Run> grid_runs(bool quick, int seeds) {
  std::vector<Trial> trials;
  for (const GridRow& row : kGridRows) {
    if (quick && !row.quick) continue;
    trials.push_back({.setting = {{"attention", row.attention}, {"feeding", row.feeding}},
                      .train = {"--attention", row.attention}});
    if (!row.feeding && row.attention != "none") trials.back().train.push_back("--no-input-feeding");
  }
  return runs_of(trials, quick, seeds);
}

// What the page says before anything is measured.
Page grid_words() {
  Page page;
  page.title = "Luong's grid: scores, windows, input feeding";
  page.claim =
      "Luong, Pham and Manning, *Effective approaches to attention-based neural machine translation* (2015, "
      "arXiv:1508.04025), compare scores (dot, general, concat, location), a look at all words (global) "
      "with one at a window around step t (local-m) or around a predicted place (local-p), and input "
      "feeding, by which a step is told what the step before found. BLEU and perplexity in their table 4, "
      "English to German: location 18.1 and 6.4, dot 18.6 and 6.1, general 17.3 and 6.1, local-m with general "
      "18.6 and 6.2, local-p with general 19.0 and 5.9. Without attention there are 14.0, with location 16.8, "
      "and with input feeding 18.1 (table 1). Alignment error (AER) in table 6: location 0.39, local-p 0.36, "
      "local-m 0.34. Concat fared badly, with a perplexity of 6.7, which a footnote blames on their program: "
      "of its matrix only the block of the decoder's state is learned, that of the annotations is the "
      "identity.";
  page.theory =
      "Location asks the state only how far it is: it can count words, not read them, so that it must miss "
      "wherever the two languages differ in order or length. The other scores compare the state with what "
      "stands at a position. In concat, v · tanh(W h + U s), the state h matters for what is looked at only "
      "where the tanh bends: where it is a straight line, h adds as much to the score of every word. U can "
      "bring the annotations s there; the identity in its place leaves them as they are. A window keeps far "
      "words out, which helps where there are many; sentences are short here. Around a predicted place it "
      "must find the place before anything in it can be learnt. Input feeding tells the decoder what it has "
      "looked at, so that it can go on from there.";
  page.reasons = {
      "*Input feeding.* It makes a decoder's input twice as wide, which has to be learnt in four epochs, "
      "and gives little in return: sentences are short, and most words are translated in the order of the "
      "source, so that a state knows what comes next without being told what was found. With location it "
      "costs more than the seeds differ by, with general and local-p it does not.",
      "*General behind location.* The seeds of general reach from 65 to 78 BLEU. A likely reason is that "
      "its products are divided by nothing, so that the softmax is soon on one word and hardly passes a "
      "gradient on, whether or not it is the right one ([transformer](transformer.md) has what the missing "
      "division costs there). Location does well because the word order of the two languages is much the "
      "same here.",
      "*Local-p.* It is below the model without attention (17.9 and 33.2 BLEU): in four epochs it has not "
      "found its place. A place more than two words off gives the right word no weight, and so no "
      "gradient that would tell it to move there. With 40,000 pairs it does get there: 94.8 BLEU and an AER of "
      "0.166 in [the attention race](../attention-race.md). So its rows measure how late it learns, and "
      "with it fall the orders of the windows in tables 4 and 6."};
  page.differences = {
      "One layer of GRU that reads both ways, 64 units, the embedded English-French corpus at the size of "
      "the command above; the paper has four layers of LSTM of 1000 units that read one way, the source "
      "reversed, 4.5 million pairs of English and German. So orders are compared, not numbers.",
      "All in Luong's order (the state first, then the look), with his attention vector. For dot, which needs "
      "annotations as wide as the decoder's state, the encoder's two directions have 32 units instead of "
      "64: it has fewer weights than the others.",
      "The window is two words to each side instead of ten, for sentences of some twelve tokens. Both "
      "windows score with general: `translator` has no option for their score, so that the paper's rows "
      "local-m and local-p with dot are missing.",
      "AER is of the largest weight at each word of the reference, which the decoder is fed, against all "
      "links of the word as sure ones; the gold links themselves have 0.029 (oracle in [need](need.md)). The "
      "paper's own note 14 says that with content scores the weights of a step may belong to the word that "
      "goes in rather than to the one that comes out. Exact match and BLEU are of greedy translations of "
      "1000 test sentences.",
      "The recipe is that of [need](need.md), chosen there on seed 101 for another attention: nothing was "
      "tuned for any row. On seed 101, which is none of the page's, general and local-p were also tried "
      "with an encoder that reads one way, as the paper's: general 68.2 BLEU and an AER of 0.251, both ways "
      "72.2 and 0.185; local-p 7.7 and 20.1 BLEU. How the rows come out after a longer "
      "training: [the attention race](../attention-race.md).",
      "The row without attention was added when a quick run on seed 101 had location above general on its "
      "short sentences (35.0 and 26.3 BLEU): no order among scores can be told in seconds. The other orders "
      "were put down before any figure of the page's seeds was known; the last one is not in the paper."};
  return page;
}

Page grid_page(const std::vector<Log>& logs) {
  Page page = grid_words();
  auto of = [&](const GridRow& row) {
    return where(logs, {{"attention", row.attention}, {"feeding", row.feeding}});
  };
  Table table{
      "Translated exactly in per cent, BLEU, perplexity, alignment error; concat-identity is concat as in the "
      "paper's program.",
      {"attention", "input feeding", "BLEU", "exact match", "perplexity", "AER"},
      {}};
  Panel bleu{.title = "BLEU", .x_name = "identity: concat as published", .bars = true, .factor = 100};
  bleu.series = {{"input feeding", {}}, {"without", {}}};
  Panel error = bleu;
  error.title = "Alignment error, %";
  for (const GridRow& row : kGridRows) {
    const std::vector<Log> some = of(row);
    if (some.empty()) continue;  // quick
    const bool none = row.attention == "none";
    const std::vector<double> score = hundredths(results(some, "bleu"));
    table.rows.push_back({row.attention,
                          none          ? "-"
                          : row.feeding ? "yes"
                                        : "no",
                          cell(some, "bleu"), cell(some, "exact_match"), cell(some, "perplexity"),
                          none ? "-" : cell(some, "aer")});
    if (none) {
      bleu.guide = translator::spread_of(score).mean;
      bleu.guide_name = "no attention";
      continue;
    }
    // Those without input feeding come last: beside the bars that are there.
    const auto at = static_cast<size_t>(std::find(bleu.places.begin(), bleu.places.end(), row.shown) -
                                        bleu.places.begin());
    for (Panel* panel : {&bleu, &error}) {
      if (at == panel->places.size()) panel->places.push_back(row.shown);
      Series& series = panel->series[row.feeding ? 0 : 1];
      series.values.resize(panel->places.size());
      series.values[at] = panel == &bleu ? score : results(some, "aer");
    }
  }
  page.tables = {table};
  page.svg_text = "BLEU and alignment error of Luong's scores and windows, with and without input feeding";
  page.svg = chart_svg(page.svg_text, {bleu, error});

  // An order of rows, given as attention names, "-" in front of those without input feeding.
  auto order = [&](const std::string& what, const Words& rows, const char* result) {
    std::vector<Measured> values;
    for (const std::string& name : rows) {
      const bool feeding = name[0] != '-';
      const std::string attention = feeding ? name : name.substr(1);
      const std::vector<Log> some = where(logs, {{"attention", attention}, {"feeding", feeding}});
      if (some.empty()) return;  // quick
      const bool less = !feeding && attention != "none";
      values.push_back({attention + (less ? " without input feeding" : ""), results(some, result)});
    }
    page.find(what, values, format_of(result));
  };
  order("Table 1, BLEU: ", {"-none", "-location"}, "bleu");
  order("Table 1, input feeding, BLEU: ", {"-location", "location"}, "bleu");
  order("The same with general: ", {"-general", "general"}, "bleu");
  order("The same with local-p: ", {"-local-p", "local-p"}, "bleu");
  order("Table 4, perplexity: ", {"dot", "location"}, "perplexity");
  order("Table 4, perplexity: ", {"general", "location"}, "perplexity");
  order("Table 4, global, BLEU: ", {"general", "location", "dot"}, "bleu");
  order("Table 4, general with windows, BLEU: ", {"general", "local-m", "local-p"}, "bleu");
  order("Concat is better with all of its matrix learned, perplexity: ", {"concat", "concat-identity"},
        "perplexity");
  order("Table 6, AER: ", {"local-m", "local-p", "location"}, "aer");
  order("Not in the paper's table, AER of a global look at what stands there: ", {"general", "location"},
        "aer");
  return page;
}

}  // namespace

const Experiment kGrid = {"grid", "Luong's scores, windows and input feeding: translations and alignments",
                          grid_runs, grid_page};

}  // namespace papers
