// Xu et al. 2015: sentences about pictures, and where the gaze rests.

#include <set>

#include "chart.h"
#include "experiment.h"

namespace papers {
namespace {

struct Gaze {
  std::string name, attention;
  bool doubly;
};
const std::vector<Gaze> kGazes = {{"mean", "uniform", false},
                                  {"hard", "hard", false},
                                  {"soft", "bahdanau", false},
                                  {"soft, doubly stochastic", "bahdanau", true}};

std::vector<Run> captions_runs(bool quick, int seeds) {
  std::vector<Run> out;
  for (int seed = 1; seed <= seeds; ++seed)
    for (const Gaze& gaze : kGazes) {
      const Words more = gaze.doubly ? Words{"--doubly-stochastic"} : Words{};
      out.push_back(gallery_run({{"gaze", gaze.name}, {"quick", quick}},
                                {"gallery-captions", "--attention", gaze.attention}, seed, quick,
                                quick ? 0.6 : 8, more));
    }
  return out;
}

// What the page says before anything is measured.
Page captions_words() {
  Page page;
  page.title = "Where the gaze rests";
  page.claim =
      "Xu et al., *Show, attend and tell* (2015, arXiv:1502.03044), say a sentence about a picture with "
      "attention over 14 by 14 places of it, and find the gaze on what is being named. Soft attention takes "
      "a weighted mean of the places; hard attention draws one, and learns by REINFORCE. The two are near "
      "each other (BLEU-4 on COCO 24.3 and 25.0). A term for the loss has every place looked at equally, "
      "over all words (\"doubly stochastic\").";
  page.theory =
      "The mean of all places has all forms and colours in it, but what belongs to which place only as far "
      "as the network can put it into a sum. Attention can take one thing after the other. Nobody tells it "
      "where to look: only that a word comes out wrong if it looks elsewhere. Hard attention looks at one "
      "place, so that its gaze must be right; but it learns from draws, whose gradient is noisy, and should "
      "be slower. In a picture that is mostly empty, a gaze that is spread evenly is spread over nothing.";
  page.differences = {
      "Drawn scenes: 4 by 4 patches of 8 by 8 pixels, two of them with one of 4 forms in one of 4 colours, "
      "and one sentence for each: \"a red circle above a blue square\", or \"beside\" it. One linear layer "
      "and tanh, with a position, in place of a convolutional network; a GRU of 32 units, not an LSTM; no "
      "gate on the context. Adam with a rate of 0.003, 4000 batches of 32 new scenes.",
      "Hard attention learns by REINFORCE alone, from the costs that follow a draw, against a running mean. "
      "The paper also rewards entropy, and its program takes the weights in place of a draw for every other "
      "sentence. Neither was needed; both, and more time, may be what brings its hard attention to the front.",
      "The doubly stochastic term counts once. 7 words cannot look at 16 patches once each, no more than the "
      "paper's words at 196 places; but there every place has something to be said about.",
      "The number of batches was chosen with seed 101, which is none of the page's, so that soft and hard "
      "attention have learnt the task; the doubly stochastic one is still at it. A first form, with a layer "
      "between the mean and the first state, did about the same with that seed. Nothing else was tried.",
      "`gallery-captions --attention hard` draws a picture with the gaze on it, word by word."};
  return page;
}

Page captions_page(const std::vector<Log>& logs) {
  Page page = captions_words();
  const std::set<int64_t> updates = tested_updates(logs);
  bool quick = false;
  for (const Log& log : logs) quick = quick || log.setting.at("quick").get<bool>();
  auto of = [&](size_t gaze, const char* name) {
    return Measured{kGazes[gaze].name, results(where(logs, {{"gaze", kGazes[gaze].name}}), name)};
  };
  auto series = [&](const Gaze& gaze, const char* name) {
    Series out{gaze.name, {}};
    for (int64_t update : updates)
      out.values.push_back(at_update(where(logs, {{"gaze", gaze.name}}), update, name));
    return out;
  };
  Table table{
      "Of 1000 new scenes, in per cent: sentences with every word right, and how much of the gaze is on a "
      "thing while its colour and its form are said. Without choice it is 1 / 16.",
      {"gaze", "sentences right", "gaze on what is named"},
      {}};
  Panel right{.title = "Sentences right, %", .x_name = "batches of 32 scenes", .factor = 100};
  Panel rests{.title = "Gaze on what is named, %",
              .x_name = "batches of 32 scenes",
              .factor = 100,
              .guide = 1.0 / 16,
              .guide_name = "without choice"};
  for (int64_t update : updates)  // a label at every fourth
    for (Panel* panel : {&right, &rests})
      panel->places.push_back(panel->places.size() % 4 == 3 ? std::to_string(update) : "");
  for (size_t i = 0; i < kGazes.size(); ++i) {
    table.rows.push_back(
        {kGazes[i].name, shown(of(i, "right").values, 100), shown(of(i, "gaze").values, 100)});
    right.series.push_back(series(kGazes[i], "right"));
    rests.series.push_back(series(kGazes[i], "gaze"));
  }
  page.tables = {table};
  page.svg_text = "Sentences right, and the share of the gaze on what is named, while four networks learn";
  page.svg = chart_svg(page.svg_text, {right, rests});

  page.find("Sentences right, per cent: ", {of(0, "right"), of(2, "right")});
  if (!quick) {  // hard attention has only begun there, and the doubly stochastic one has not lost yet
    page.find("Sentences right, per cent: ", {of(0, "right"), of(1, "right")});
    page.find("Sentences right, per cent, which the paper has the other way round: ",
              {of(1, "right"), of(2, "right")});
    page.find("Sentences right, per cent: ", {of(3, "right"), of(2, "right")});
    page.find("Gaze on what is named, per cent: ", {of(1, "gaze"), of(2, "gaze")});
  }
  page.find("Gaze on what is named, per cent: ", {of(0, "gaze"), of(1, "gaze")});
  page.find("Gaze on what is named, per cent: ", {of(0, "gaze"), of(2, "gaze")});
  page.find("Gaze on what is named, per cent: ", {of(3, "gaze"), of(2, "gaze")});
  return page;
}

}  // namespace

const Experiment kCaptions = {"captions",
                              "where the gaze rests while a picture is described: mean, soft, hard",
                              captions_runs, captions_page};

}  // namespace papers
