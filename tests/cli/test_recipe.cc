// What a run is trained with: optimisers, schedules, clipping, averages, scheduled sampling.

#include <gradus/io/safetensors.h>
#include <gradus/kernels/products/gemm.h>

#include <cmath>
#include <map>

#include "../about.h"
#include "../quick_doctest.h"
#include "../skip.h"
#include <common/json_text.h>
#include "program.h"

using namespace cli;

namespace {

double last_loss(const std::string& directory) {
  return events(directory, "validation").back().at("train_loss").get<double>();
}

}  // namespace

TEST_CASE("every optimiser and every schedule learns") {
  const std::vector<Arguments> recipes = {{"--optimizer", "adamw", "--schedule", "cosine"},
                                          {"--optimizer", "muon", "--schedule", "linear"},
                                          {"--optimizer", "sgd", "--lr", "1", "--schedule", "step"},
                                          {"--optimizer", "adagrad", "--schedule", "constant"},
                                          {"--optimizer", "rmsprop", "--schedule", "exponential"},
                                          {"--optimizer", "adadelta", "--lr", "20", "--schedule", "plateau"},
                                          {"--schedule", "noam", "--warmup", "30"}};
  for (const Arguments& recipe : recipes) {
    CAPTURE(recipe[1]);
    run_well(
        small_run("recipe", recipe + Arguments{"--epochs", "2", "--validate-every", "20", "--force"}));
    auto log = events("recipe", "validation");
    CHECK(last_loss("recipe") < 0.9 * log.front().at("train_loss").get<double>());
  }
}

TEST_CASE("schedules end where they should") {
  auto last_rate = [](const char* schedule) {
    REQUIRE(run(small_run("rates", {"--schedule", schedule, "--epochs", "2", "--force"})).code == 0);
    return events("rates", "validation").back().at("lr").get<double>() /
           0.01;  // the lr of the run after this one
  };
  CHECK(last_rate("constant") == about(1));
  CHECK(last_rate("linear") == about(0.05));
  CHECK(last_rate("cosine") == about(0));
  CHECK(last_rate("exponential") == about(0.01));
  CHECK(last_rate("step") == about(1.0 / 16));
}

TEST_CASE("the moving average is what is kept") {
  REQUIRE(run(small_run("averaged", {"--ema", "0.99", "--epochs", "2", "--force"})).code == 0);
  auto read = [](const std::string& name) { return gradus::load_safetensors(in_scratch(name)); };
  auto find = [](const gradus::SafetensorsFile& file, const std::string& name) {
    for (const auto& [n, t] : file.tensors)
      if (n == name) return t;
    FAIL("no tensor " << name);
    return gradus::Tensor();
  };
  auto best = read("averaged/model.safetensors"), last = read("averaged/last.safetensors");
  gradus::Tensor kept = find(best, "output.weight");
  CHECK(gradus::max_abs_difference(kept, find(last, "ema.output.weight")) == 0);
  CHECK(gradus::max_abs_difference(kept, find(last, "output.weight")) > 1e-4);
  CHECK(run({"translate", "averaged", "she eats"}).code == 0);
}

TEST_CASE("scheduled sampling changes the run, and it still learns") {
  const Arguments more = {"--epochs", "2", "--validate-every", "20", "--force"};
  REQUIRE(run(small_run("plain", more)).code == 0);
  REQUIRE(run(small_run("sampled", more + Arguments{"--scheduled-sampling", "0.8"})).code == 0);
  CHECK(last_loss("sampled") != last_loss("plain"));
  CHECK(last_loss("sampled") < 0.9 * events("sampled", "validation").front().at("train_loss").get<double>());
}

TEST_CASE("no option of a network or of its training is ignored: the weights come out different") {
  REQUIRE(shell("head -n 300 " + short_pairs() + " > few-lines.tsv").code == 0);
  auto weights = [](const Arguments& options) {
    Arguments a = {"train",        "--data", "few-lines.tsv", "--out",       "turned", "--force",
                   "--epochs",     "1",      "--threads",     "1",           "--lr",   "0.01",
                   "--batch-size", "16",     "--embedding",   "16",          "-q",     "--subwords",
                   "none",         "--ema",  "0",             "--dropout",   "0.2",    "--no-tie-embeddings",
                   "--min-count",  "1",      "--case",        "lower"};
    run_well(a + options);
    std::string bytes;
    for (const auto& [name, tensor] : gradus::load_safetensors(in_scratch("turned/model.safetensors")).tensors)
      bytes.append(reinterpret_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes()));
    return bytes;
  };
  const Arguments gru = {"--hidden", "16", "--attention", "bahdanau", "--optimizer", "adam"},
                  luong = {"--hidden", "16", "--attention", "bahdanau", "--decoder", "luong"},
                  deep = {"--hidden", "16", "--attention", "bahdanau", "--layers", "2"},
                  one_way = {"--hidden", "16", "--attention", "bahdanau", "--unidirectional"},
                  sgd = {"--hidden", "16", "--attention", "bahdanau", "--optimizer", "sgd"},
                  transformer = {"--model", "transformer", "--layers", "1", "--heads", "2"};
  const std::vector<std::pair<Arguments, Arguments>> turned = {
      {gru, {"--layer-norm"}},
      {gru, {"--variational=false"}},
      {gru, {"--recurrent-dropout", "0.4"}},
      {gru, {"--weight-decay", "0.1"}},
      {gru, {"--warmup", "3"}},
      {gru, {"--clip-norm", "0.01"}},
      {gru, {"--clip-value", "0.0001"}},
      {gru, {"--dropout-warmup", "5"}},
      {gru, {"--word-dropout", "0.3"}},
      {gru, {"--accumulate", "2"}},
      {luong, {"--no-input-feeding"}},
      {deep, {"--residual"}},
      {one_way, {"--reverse-source"}},
      {sgd, {"--momentum", "0.5"}},
      {transformer, {"--norm-last"}},
      {transformer, {"--no-causal-mask"}},
      {transformer, {"--positions", "none"}},
      {transformer, {"--temperature", "2"}},
  };
  std::map<Arguments, std::string> without;
  for (const auto& [others, option] : turned) {
    CAPTURE(option[0]);
    if (!without.contains(others)) without[others] = weights(others);
    CHECK((weights(others + option) != without[others]));
  }
}

TEST_CASE("names that do not exist, and clipping that is off") {
  CHECK(run(small_run("none", {"--optimizer", "lion"})).code == 2);
  CHECK(run(small_run("none", {"--schedule", "wave"})).code == 2);
  REQUIRE(run(small_run("unclipped", {"--clip-norm", "0", "--epochs", "1", "--force"})).code == 0);
  CHECK(json_text::parse(read_file("unclipped/training.json")).at("clip-norm") == 0);
  REQUIRE(run(small_run("unclipped", {"--clip-value", "0.1", "--epochs", "1", "--force"})).code == 0);
  auto json = json_text::parse(read_file("unclipped/training.json"));
  CHECK(json.at("clip-norm") == 0);
  CHECK(json.at("clip-value") == 0.1);
}

TEST_CASE("guided alignment: attention learns from the links of the data where to look") {
  REQUIRE(run({"corpus", "-n", "1200", "--max-length", "7", "--links", "-o", "linked.tsv"}).code == 0);
  auto error_rate = [&](const std::string& out, const Arguments& more) {
    run_well(small_run(out, Arguments{"--data", "linked.tsv", "--epochs", "4"} + more));
    return json_text::parse(run({"evaluate", out, "linked.tsv", "--json"}).out).at("aer").get<double>();
  };
  const double alone = error_rate("unguided", {}), guided = error_rate("guided", {"--guided-alignment", "1"});
  CHECK(guided < 0.4);
  CHECK(guided < alone / 2);
  CHECK(json_text::parse(read_file("guided/training.json")).at("guided-alignment") == 1);
  // The same without those links: a word aligner's, which any pairs have.
  const double by_itself = error_rate("guided_by_aligner", {"--guided-alignment", "1", "--links", "learnt"});
  CHECK(by_itself < alone / 1.5);
  CHECK(by_itself > guided);
  REQUIRE(run({"corpus", "-n", "300", "--max-length", "7", "-o", "unlinked.tsv"}).code == 0);
  Arguments unlinked = small_run("guided_unlinked", {"--data", "unlinked.tsv", "--guided-alignment", "1"});
  REQUIRE(run(unlinked).code == 0);
  CHECK(json_text::parse(read_file("guided_unlinked/training.json")).at("links") == "learnt");
  auto refused = [&](const Arguments& more) { return run(small_run("unguidable", more)).err; };
  CHECK(
      refused({"--guided-alignment", "1", "--links", "given"})
          .find("training data: has no alignments (a third column, 0-0 1-2), which --guided-alignment learns "
                "from\n") != std::string::npos);
  CHECK(refused({"--guided-alignment", "1", "--attention", "multihead"}) ==
        "translator: --guided-alignment has nothing to teach to attention multihead\n");
  CHECK(run({"train", "--model", "transformer", "--guided-alignment", "1", "--out", "unguidable"}).err ==
        "translator: --guided-alignment is for recurrent models, with one attention\n");
}

TEST_CASE("steps in bfloat16 learn as those in f32 do, the same twice over, and a run may change to f32") {
  const Arguments wide = {"--hidden", "128",      "--embedding", "128",       "--batch-size",
                          "64",       "--epochs", "3",           "--threads", "2"};
  const auto with = [&](const char* name, Arguments more) {
    more.insert(more.begin(), wide.begin(), wide.end());
    return run(small_run(name, more));
  };
  if (const Result first = with("bf16", {"--precision", "bf16"}); first.code != 0) {
    CHECK(
        first.says("translator: --precision bf16 needs a CPU with AVX512_BF16, which this one has not: "
                   "--precision f32\n"));
    return gradus::testing::skipped("this CPU has no AVX512_BF16");
  }
  REQUIRE(with("f32", {}).code == 0);
  REQUIRE(with("bf16-again", {"--precision", "bf16"}).code == 0);
  const auto loss = [&](const char* name) {
    return events(name, "validation").back().at("valid_loss").get<double>();
  };
  CHECK((loss("bf16") != loss("f32") || gradus::kernels::amx_ready()));  // which goes on in f32
  CHECK(std::abs(loss("bf16") - loss("f32")) < 0.05 * loss("f32"));
  CHECK(read_file("bf16/model.safetensors") == read_file("bf16-again/model.safetensors"));
  CHECK(with("bf16", {"--resume", "--precision", "f32", "--epochs", "4"}).code == 0);
}
