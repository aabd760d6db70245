// Hermann et al. 2015: a blank is filled from a story, by what the reader keeps of it.

#include <fmt/core.h>

#include <set>

#include "chart.h"
#include "experiment.h"

namespace papers {
namespace {

struct Head {
  std::string name, shown;
};
const std::vector<Head> kHeads = {{"uniform", "uniform"},
                                  {"none", "no attention"},
                                  {"bahdanau", "additive attention"},
                                  {"general", "general attention"}};

std::vector<Run> reader_runs(bool quick, int seeds) {
  std::vector<Run> out;
  for (int seed = 1; seed <= seeds; ++seed)
    for (const Head& head : kHeads)
      out.push_back(gallery_run({{"head", head.name}, {"sentences", quick ? 3 : 8}},
                                {"gallery-attentive_reader", "--head", head.name}, seed, quick,
                                quick ? 0.7 : 16));
  return out;
}

// What the page says before anything is measured.
Page reader_words() {
  Page page;
  page.title = "Filling a blank from a story";
  page.claim =
      "Hermann et al., *Teaching machines to read and comprehend* (2015, arXiv:1506.03340), ask for a name "
      "that is blanked out of a sentence about a news article. Names are markers, dealt anew for each "
      "article, so that only reading helps. On CNN's articles a reader with uniform weights answers 39.4 % "
      "right, a deep LSTM without attention 57.0 %, and additive attention over the article 63.0 %. Chen, "
      "Bolton and Manning (2016, arXiv:1606.02858) take the general score instead and leave out a layer: "
      "72.7 %, and 73.6 % with markers in the order of their first appearance.";
  page.theory =
      "Attention first compares each place of the story with the question, and then reads there. The mean of "
      "all states is the same whatever is asked. Without attention the last states have to hold the answer. "
      "This network reads the question before the story in its forward direction, and can wait for what is "
      "asked: once the known name and the verb have come by, the next name is the answer. Where the blank "
      "comes first, the answer has passed before the network knows that it is one; and the backward "
      "direction, which meets it last, reads the question after the story. The general score multiplies "
      "question and state, which is what a comparison takes; additive attention has to make one of tanh.";
  page.differences = {
      "Stories of a generator: 8 sentences of 5 words, 10 markers, 6 actions with two verbs each, so that "
      "the question may use another one; the question is one of the sentences. Real articles have hundreds "
      "of words, and questions that take more than finding a sentence: here attention gets nearly all right, "
      "which it does not do there. So what the general score gains shows in how soon it learns.",
      "GRU, one layer in both directions, 32 units and embeddings of 32; Adam with a rate of 0.003, 4000 "
      "batches of 32 new stories; the paper has LSTM of 64 to 256 units, RMSProp, and a fixed training set. "
      "The reader without attention reads question and story in both directions. All readers end in the same "
      "tanh layer and softmax, so that they differ in attention alone; Chen et al. leave the layer out.",
      "The number of batches was chosen with seed 101, which is none of the page's, so that no reader still "
      "improves much. A first form of the stories, with sentences of 4 to 6 words, gave the same order with "
      "that seed, and no attention the same half after 6000 batches. Rates of 0.005 and 0.01 were tried for "
      "shorter stories only.",
      "`gallery-attentive_reader --head general` shows a story's words shaded by their weights. They need not "
      "rest on the name itself: a state of the network knows its neighbours."};
  return page;
}

Page reader_page(const std::vector<Log>& logs) {
  Page page = reader_words();
  const std::set<int64_t> updates = tested_updates(logs);
  int sentences = 0;
  for (const Log& log : logs) sentences = log.setting.at("sentences").get<int>();
  auto of = [&](const Head& head) { return where(logs, {{"head", head.name}}); };
  auto measured = [&](size_t head, const char* name) {
    return Measured{kHeads[head].shown, results(of(kHeads[head]), name)};
  };
  const std::vector<double> frequent = results(of(kHeads[0]), "frequent");  // the stories are the same for all

  Table table{
      fmt::format("Of 1000 questions about stories of {} sentences, in per cent: answered right, all and "
                  "by where the blank is, and the weight on the sentence that has the answer. The marker "
                  "that a story has most often would be right in {}.",
                  sentences, shown(frequent, 100)),
      {"reader", "right", "blank before the verb", "behind it", "weight on the sentence"},
      {}};
  Panel panel{.title = "Answered right, %",
              .x_name = "batches of 32 stories",
              .factor = 100,
              .guide = translator::spread_of(frequent).mean,
              .guide_name = "most frequent marker"};
  for (int64_t update : updates)  // a label at every fourth
    panel.places.push_back(panel.places.size() % 4 == 3 ? std::to_string(update) : "");
  for (const Head& head : kHeads) {
    const std::vector<Log> some = of(head);
    Words row = {head.shown};
    for (const char* name : {"right", "before", "behind"}) row.push_back(shown(results(some, name), 100));
    row.push_back(head.name == "none" ? "-" : shown(results(some, "found"), 100));
    table.rows.push_back(row);
    panel.series.push_back({head.shown, {}});
    for (int64_t update : updates) panel.series.back().values.push_back(at_update(some, update, "right"));
  }
  page.tables = {table};
  page.svg_text =
      "Share of blanks filled right while four readers learn; the dashed line takes the most frequent marker";
  page.svg = chart_svg(page.svg_text, {panel});

  auto early = [&](size_t head, int64_t update) {
    return Measured{kHeads[head].shown, at_update(of(kHeads[head]), update, "right")};
  };
  // Quick runs end when only the general score has found out.
  if (sentences == 8) {
    page.find("Answered right, per cent: ",
              {measured(0, "right"), measured(1, "right"), measured(2, "right")});
    page.find("After 1000 batches: ", {early(2, 1000), early(3, 1000)});
    page.find("At the end: ", {measured(2, "right"), measured(3, "right")});
    page.find("Without attention: ", {{"blank before the verb", measured(1, "before").values},
                                      {"behind it", measured(1, "behind").values}});
    page.find("Weight on the sentence with the answer: ", {measured(0, "found"), measured(2, "found")});
  } else {
    page.find("Answered right, per cent: ", {measured(2, "right"), measured(3, "right")});
    page.find("Answered right, per cent: ", {measured(1, "right"), measured(3, "right")});
  }
  page.find("Weight on the sentence with the answer: ", {measured(0, "found"), measured(3, "found")});
  return page;
}

}  // namespace

const Experiment kReader = {"reader", "attention finds the answer in a story: four readers of blanked names",
                            reader_runs, reader_page};

}  // namespace papers
