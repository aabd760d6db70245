// Joulin and Mikolov 2015: counting, by what there is to count with.

#include <fmt/core.h>

#include <set>

#include "chart.h"
#include "experiment.h"

namespace papers {
namespace {

const Words kCounters = {"rnn", "lstm", "stack"};
const Words kStackLanguages = {"anbn", "anb2n", "anbncn"};

std::vector<Run> stack_runs(bool quick, int seeds) {
  std::vector<Run> out;
  for (int seed = 1; seed <= seeds; ++seed)
    for (const std::string& language : kStackLanguages) {
      if (quick && language != kStackLanguages[0]) continue;
      for (const std::string& model : kCounters)
        out.push_back(gallery_run({{"language", language}, {"model", model}},
                                  {"gallery-stack_rnn", "--model", model, "--language", language}, seed,
                                  quick, (quick ? 0.1 : 1) * (model == "stack" ? 20 : 2)));
    }
  return out;
}

// What the page says before anything is measured.
Page stack_words() {
  Page page;
  page.title = "Counting takes a memory that grows";
  page.claim =
      "Joulin and Mikolov, *Inferring algorithmic patterns with stack-augmented recurrent nets* (2015, "
      "arXiv:1503.01007), give a recurrent network stacks that it learns to push and to pop. Trained on n < 20 "
      "and tested up to n = 60, a plain RNN predicts 25 % of a^n b^n, 23.3 % of a^n b^2n and 23.3 % of a^n b^n "
      "c^n, an LSTM 100, 75 and 100 %, the stack RNN 100 % of each. More than 33.3 % is more than was trained "
      "on.";
  page.theory =
      "After the first b, all that follows is known to who has counted the a. A unit between 0 and 1 counts by "
      "moving a little for each a; the larger n, the finer must it be told when it is back, and nothing in "
      "training asks for more than 19. A cell of an LSTM adds, without a bound, and can count on, less and "
      "less exactly. On a stack the end of the count is its bottom, which looks the same for every n.";
  page.differences = {
      "Each string by itself, with the a of a next one at its end, from empty stacks; the paper has one long "
      "stream. A batch is all 19 strings, the short ones first: n to 3 at the beginning and one more every 40 "
      "updates. 800 updates of Adam from 0.01 down to 0, errors clipped at 15; the paper updates after every "
      "symbol, by SGD, millions of times.",
      "40 units and 10 stacks of which two places are seen, without R, as in the paper; actions are softmax(3 "
      "A h). With a factor of 1, two starts of a first form (seed 101) got to 33 and 38 % of a^n b^n.",
      "The paper restarts, and so does this: of four starts, tested every 50 updates, the state with the least "
      "loss on n = 20 to 25 is taken, by a rule that is one for all models. These lengths are part of n = 1 "
      "to 60, all of which are counted, as in the paper.",
      "Factor, rate and its decay, and how many updates were chosen for the stack RNN on seed 101, which is "
      "none of the page's. The RNN and the LSTM have the same: their figures are no upper bound of what they "
      "could learn.",
      "Rounded, an action is the likeliest one. Where that spoils a run that was right, it had learnt actions "
      "in between, which pop a part of a place.",
      "`gallery-stack_rnn --language anbncn` draws the actions of each stack over a string."};
  return page;
}

Page stack_page(const std::vector<Log>& logs) {
  Page page = stack_words();
  std::set<std::string> present;
  for (const Log& log : logs) present.insert(log.setting.at("language").get<std::string>());
  auto of = [&](const std::string& model, const std::string& language, const char* name) {
    return results(where(logs, {{"model", model}, {"language", language}}), name);
  };
  Table table{"Strings of n = 1 to 60 all of whose known symbols are predicted, in per cent.", {"model"}, {}};
  Panel panel{.title = "Strings right, %",
              .x_name = "language",
              .bars = true,
              .factor = 100,
              .guide = 19.0 / 60,
              .guide_name = "n < 20, trained on"};
  for (const std::string& language : kStackLanguages) {
    if (!present.count(language)) continue;
    table.head.push_back(language);
    panel.places.push_back(language);
  }
  auto add_row = [&](const std::string& name, const std::string& model, const char* result) {
    table.rows.push_back({name});
    for (const std::string& language : panel.places)
      table.rows.back().push_back(shown(of(model, language, result), 100));
  };
  for (const std::string& model : kCounters) {
    add_row(model, model, "right");
    panel.series.push_back({model, {}});
    for (const std::string& language : panel.places)
      panel.series.back().values.push_back(of(model, language, "right"));
  }
  add_row("stack, actions rounded", "stack", "rounded");
  page.tables = {table};
  page.svg_text = "Share of strings predicted, by language and model; the line is what was trained on";
  page.svg = chart_svg(page.svg_text, {panel});

  for (const std::string& language : panel.places)
    for (const char* fewer : {"rnn", "lstm"})
      page.find(language + ", per cent right: ",
                {{fewer, of(fewer, language, "right")}, {"stack", of("stack", language, "right")}});
  for (const std::string& language : panel.places) {
    const std::vector<double> right = of("stack", language, "right");
    const double mean = translator::spread_of(right).mean;
    page.findings.push_back(
        {!right.empty() && mean > 1.0 / 3,
         fmt::format("{}: the stack RNN generalises beyond what it was trained on, {:.1f} % > 33.3 %.",
                     language, 100 * mean)});
  }
  return page;
}

}  // namespace

const Experiment kStack = {"stack", "counting: a^n b^n and its like, by RNN, LSTM and stack RNN", stack_runs,
                           stack_page};

}  // namespace papers
