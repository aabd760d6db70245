// Which model is the best by --metric, which are kept, their mean, and when a run is out of patience.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>

#include <gradus/io/safetensors.h>
#include <translator/model/files.h>
#include <translator/training/trainer.h>

#include "../about.h"
#include "../io/scratch.h"
#include "tiny.h"

using namespace gradus;
using namespace translator;

namespace {

const std::atomic<bool> kNotStopped{false};

// Steps so large that the loss goes up and down.
TrainOptions bumpy(const scratch::Directory& directory) {
  TrainOptions o = tiny::plain(directory);
  o.epochs = 12;
  o.batch_size = 2;
  o.lr = 4;
  o.clip = 1;
  return o;
}

std::vector<Validation> trained(const TrainOptions& o,
                                const std::vector<SentencePair>& pairs = tiny::pairs()) {
  Model model = tiny::model();
  model.save_description(o.out);
  Trainer trainer(model, pairs, pairs, o);
  trainer.run(kNotStopped);
  return trainer.validations();
}

double loss_of(const std::string& directory) { return evaluate(Model::load(directory), tiny::pairs()).nll; }

}  // namespace

TEST_CASE("a score is the loss, or percents of translations; cost is what is better the lower it is") {
  Evaluation e;
  e.nll = 1.25;
  e.bleu.score = 31;
  e.exact_match = 0.5;
  e.hypotheses = {"Il chante"};
  e.references = {{"il chante"}};
  CHECK(score_of(e, "loss", false) == 1.25);
  CHECK(score_of(e, "bleu", false) == 31);
  CHECK(score_of(e, "exact", false) == 50);
  CHECK(score_of(e, "chrf", true) == about(100));
  CHECK(score_of(e, "chrf", false) < 99);
  CHECK(score_of({}, "chrf", false) == 0);
  CHECK(cost_of(1.25, "loss") == 1.25);
  CHECK(cost_of(31, "bleu") == -31);
}

TEST_CASE(
    "the best is the first with the best score, whatever the loss; all validation pairs are translated") {
  for (const char* metric : {"bleu", "chrf", "exact"}) {
    CAPTURE(metric);
    scratch::Directory directory;
    TrainOptions o = bumpy(directory);
    o.metric = metric;
    o.validation_translations = 3;
    o.lr = 1;
    o.epochs = 40;
    std::vector<Validation> all = trained(o);
    REQUIRE(all.size() == 40);
    double best = -1;
    for (const Validation& v : all) {
      CHECK(v.evaluation.translated == 6);
      CHECK(v.score == score_of(v.evaluation, metric, true));
      CHECK(v.best == (v.score > best));
      best = std::max(best, v.score);
    }
    CHECK(best > 0);
    auto facts = load_safetensors(directory.file("model.safetensors")).metadata;
    CHECK(std::stod(facts.at(std::string("validation_") + metric)) == about(best, 1e-6));
  }
}

TEST_CASE(
    "patience counts validations that are no better, goes on with more of it, and is told by the state") {
  scratch::Directory directory;
  TrainOptions o = bumpy(directory);
  o.lr = 1e-30;  // nothing moves
  o.patience = 3;
  CHECK(trained(o).size() == 4);
  o.patience = 5;
  Model model = tiny::model();
  Trainer trainer(model, tiny::pairs(), tiny::pairs(), o);
  trainer.resume();
  CHECK_FALSE(trainer.out_of_patience());
  CHECK(trainer.run(kNotStopped));
  CHECK(trainer.validations().size() == 2);
  CHECK(trainer.out_of_patience());
  CHECK(trainer.epochs() == 6);
  o.patience = 0;
  CHECK(trained(o).size() == 12);
}

TEST_CASE("the best models are kept as directories that load, and no others") {
  scratch::Directory directory;
  TrainOptions o = bumpy(directory);
  o.keep = 3;
  std::filesystem::create_directories(directory.file("kept/step-999"));  // of a run that was killed
  std::filesystem::create_directories(directory.file("kept/notes"));     // of somebody's own
  std::vector<Validation> all = trained(o);
  std::stable_sort(all.begin(), all.end(),
                   [](const Validation& a, const Validation& b) { return a.score < b.score; });
  std::vector<std::string> expected = {"notes"}, found = names_in(directory.file("kept"));
  for (size_t i = 0; i < 3; ++i) {
    expected.push_back("step-" + std::to_string(all[i].step));
    CHECK(loss_of(directory.file("kept/" + expected.back())) == about(all[i].evaluation.nll, 1e-6));
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  CHECK(found == expected);
  CHECK(scratch::read(directory.file("kept/step-" + std::to_string(all[0].step) + "/model.safetensors")) ==
        scratch::read(directory.file("model.safetensors")));
}

TEST_CASE("of models that are equally good the first is kept") {
  scratch::Directory directory;
  Checkpoints kept(directory.path().string(), 1);
  for (int64_t step : {1, 2}) kept.offer(tiny::model(), {step, 0.5}, {});
  REQUIRE(kept.best().size() == 1);
  CHECK(kept.best()[0].step == 1);
}

TEST_CASE("the mean of the best takes the best one's place where it is better, and only there") {
  int better = 0, worse = 0;
  for (double lr : {0.02, 0.5, 2.0, 4.0}) {
    CAPTURE(lr);
    scratch::Directory directory;
    TrainOptions o = bumpy(directory);
    o.lr = lr;
    o.keep = 2;
    o.average = true;
    Model model = tiny::model();
    model.save_description(o.out);
    Trainer trainer(model, tiny::pairs(), tiny::pairs(), o);
    REQUIRE(trainer.run(kNotStopped));
    std::vector<std::string> kept = names_in(directory.file("kept"));
    REQUIRE(kept.size() == 2);
    Model mean = Model::load(directory.file("kept/" + kept[0]));
    const nn::StateDict other = nn::state_dict(*Model::load(directory.file("kept/" + kept[1])).network);
    nn::StateDict sum;
    size_t i = 0;
    for (auto& [name, tensor] : nn::state_dict(*mean.network)) {
      Tensor half = tensor.clone();
      for (int64_t k = 0; k < half.numel(); ++k) half.set(k, (tensor.at(k) + other[i].second.at(k)) / 2);
      sum.emplace_back(name, half);
      ++i;
    }
    nn::load_state_dict(*mean.network, sum);
    const double loss = evaluate(mean, tiny::pairs()).nll;
    CHECK(trainer.averaged().empty() == (loss >= trainer.best_loss()));
    CHECK(loss_of(o.out) == about(std::min(loss, trainer.best_loss()), 1e-6));
    ++(trainer.averaged().empty() ? worse : better);
  }
  CHECK(better > 0);
  CHECK(worse > 0);
}

TEST_CASE("the text of what is kept comes back; any other is none") {
  scratch::Directory directory;
  for (const char* step : {"8", "120"}) {
    std::filesystem::create_directories(directory.file(std::string("kept/step-") + step));
    write_file(directory.file(std::string("kept/step-") + step + "/model.safetensors"), "");
  }
  Checkpoints kept(directory.path().string(), 3);
  CHECK(kept.read("120 0.25;8 1.5;16 2"));
  CHECK(kept.text() == "120 0.25;8 1.5");  // 16 is not there
  CHECK(kept.read(""));
  CHECK(kept.text().empty());
  Checkpoints one(directory.path().string(), 1);
  CHECK(one.read("120 0.25;8 1.5"));
  CHECK(one.text() == "120 0.25");
  for (const char* text : {"x", "8", "8 ", "8 nan", "8 inf", "0 1", "-8 1", "8 1;", "8 1,120 2", "8 2;120 1",
                           "8 1;;120 2", " 8 1", "8 1 ", "99999999999999999999 1"}) {
    CAPTURE(text);
    CHECK_FALSE(Checkpoints(directory.path().string(), 3).read(text));
  }
}

TEST_CASE("kept models of other sizes have no mean") {
  scratch::Directory directory;
  Model small = tiny::model(), other = tiny::model("dot");
  Checkpoints kept(directory.path().string(), 2);
  kept.offer(small, {1, 0.5}, {});
  kept.offer(small, {2, 0.7}, {});
  CHECK(kept.mean().size() == nn::state_dict(*small.network).size());
  other.save_weights(kept.path(2));
  CHECK_THROWS_WITH(kept.mean(), (kept.path(2) + "/model.safetensors: has other weights than " + kept.path(1) +
                                  "/model.safetensors (another number of them): no mean can be taken")
                                     .c_str());
  const std::string place = kept.path(2) + "/model.safetensors";
  SafetensorsFile wider = load_safetensors(kept.path(1) + "/model.safetensors");
  Tensor& first = wider.tensors[0].second;
  first = Tensor::zeros({first.size(0), first.size(1) + 1}, first.dtype());
  save_safetensors(place, wider);
  CHECK_THROWS_WITH(kept.mean(), doctest::Contains(("(" + wider.tensors[0].first + "): no mean").c_str()));
}
