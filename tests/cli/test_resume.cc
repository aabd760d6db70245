// Runs that are interrupted, killed, and gone on with.

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <common/json_text.h>
#include <translator/text/subwords.h>

#include "../same_tensors.h"
#include "program.h"

using namespace cli;

namespace {

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// The weights in `model` are those of the run's state, which holds more than them.
void check_weights_of(const std::string& state, const std::string& model) {
  gradus::SafetensorsFile all = gradus::load_safetensors(in_scratch(state)),
                          weights = gradus::load_safetensors(in_scratch(model));
  REQUIRE(!weights.tensors.empty());
  CHECK(all.tensors.size() > weights.tensors.size());
  for (const auto& [name, tensor] : weights.tensors) {
    CAPTURE(name);
    auto at = std::find_if(all.tensors.begin(), all.tensors.end(), [&](auto& t) { return t.first == name; });
    REQUIRE(at != all.tensors.end());
    CHECK(gradus::testing::same_bits(tensor, at->second));
  }
}

// The log without what a clock measured.
std::vector<nlohmann::ordered_json> timeless(const std::string& directory) {
  auto log = events(directory, "validation");
  for (auto& event : log) {
    event.erase("seconds");
    event.erase("tokens_per_s");
  }
  return log;
}

}  // namespace

TEST_CASE("train, Ctrl-C, --resume is the same run as one without a break, to the last bit") {
  const Arguments length = {"--epochs", "3", "--validate-every", "7"};
  REQUIRE(run(small_run("whole", length)).code == 0);
  Result stopped = interrupted(small_run("broken", length), "broken", 2);
  INFO(stopped.err);
  CHECK(stopped.out.empty());
  CHECK(stopped.says("Interrupted at step "));
  CHECK(stopped.says("; everything is saved in broken. Go on with: " TRANSLATOR
                     " train --resume --out broken\n"));
  const Arguments resume = length + Arguments{"--resume"};
  Result rest = run(small_run("broken", resume));
  INFO(rest.err);
  CHECK(rest.code == 0);
  check_same_tensors(in_scratch("whole/last.safetensors"), in_scratch("broken/last.safetensors"));
  CHECK(read_file("whole/model.safetensors") == read_file("broken/model.safetensors"));
  CHECK(timeless("whole") == timeless("broken"));
  CHECK(events("broken", "start").size() == 1);
  CHECK(events("broken", "resume").size() == 1);

  // It goes on with the same data, seed and batches only, and says so.
  const std::string last = "translator: broken/last.safetensors: was made with ";
  const std::string end = ": the run cannot go on from it\n";
  auto began = [](const std::string& with) {
    return "translator: the run in broken began with " + with + ": --resume cannot change it\n";
  };
  CHECK(run(small_run("broken", {"--resume", "--seed", "5"})).says(began("--seed 42, not 5")));
  CHECK(run(small_run("broken", {"--resume", "--batch-size", "5"})).says(began("--batch-size 32, not 5")));
  write_file("other.tsv", run({"corpus", "-n", "1200", "--max-length", "7", "--seed", "9"}).out);
  Result other = run(small_run("broken", {"--resume", "-q", "--data", "other.tsv"}));
  CHECK(other.code == 1);
  CHECK(other.err == last + "other training data" + end);
  check_refused(small_run("broken", {"--resume", "-q", "--hidden", "40"}), 2,
                "the model in broken has --hidden 32, not 40: --resume cannot change it");
  // A run that is over stays as it is, and more epochs prolong it.
  Result over = run(small_run("broken", resume));
  CHECK(over.code == 0);
  CHECK(over.says("The run was over already: more --epochs or --max-minutes prolong it.\n"));
  check_same_tensors(in_scratch("whole/last.safetensors"), in_scratch("broken/last.safetensors"));
  CHECK(run(small_run("broken", {"--epochs", "4", "--resume"})).code == 0);
  CHECK(events("broken", "validation").back().at("epoch") == 4);
}

TEST_CASE("a run whose time its last validation ended is over for --resume, too") {
  // A step takes a tenth of what a validation takes.
  write_file("few.tsv", run({"corpus", "-n", "30", "--max-length", "7", "--seed", "9"}).out);
  const Arguments minutes = {"--data", "few.tsv", "--valid", short_pairs(), "--max-minutes", "0.005"};
  REQUIRE(run(small_run("timed", minutes)).code == 0);
  const std::string model = read_file("timed/model.safetensors");
  CHECK(run({"train", "--resume", "--out", "timed"}).says("The run was over already"));
  CHECK(read_file("timed/model.safetensors") == model);
  CHECK(events("timed", "resume")[0].at("seconds") == events("timed", "end")[0].at("seconds"));
}

TEST_CASE("the same with other optimisers, schedules, averages and scheduled sampling") {
  const std::vector<Arguments> recipes = {
      {"--optimizer", "muon", "--schedule", "plateau", "--warmup", "20", "--ema", "0.9",
       "--scheduled-sampling", "0.5", "--word-dropout", "0.2"},
      {"--optimizer", "rmsprop", "--momentum", "0.5", "--schedule", "noam", "--lr", "0.003", "--clip-value",
       "0.01", "--dropout", "0.4", "--dropout-warmup", "1.5"},
      {"--optimizer", "adadelta", "--schedule", "cosine", "--weight-decay", "0.001", "--label-smoothing",
       "0.1"}};
  for (const Arguments& recipe : recipes) {
    CAPTURE(recipe[1]);
    const Arguments length = recipe + Arguments{"--epochs", "2", "--validate-every", "5"};
    REQUIRE(run(small_run("whole", length + Arguments{"--force"})).code == 0);
    interrupted(small_run("broken", length), "broken", 3);
    Result rest = run(small_run("broken", length + Arguments{"--resume"}));
    INFO(rest.err);
    CHECK(rest.code == 0);
    check_same_tensors(in_scratch("whole/last.safetensors"), in_scratch("broken/last.safetensors"));
    CHECK(read_file("whole/model.safetensors") == read_file("broken/model.safetensors"));
    CHECK(timeless("whole") == timeless("broken"));
    CHECK(read_file("whole/training.json") == read_file("broken/training.json"));
  }
  auto json = json_text::parse(read_file("whole/training.json"));
  CHECK(json.at("optimizer") == "adadelta");
  CHECK(json.at("schedule") == "cosine");
  CHECK(json.at("weight-decay") == 0.001);
  CHECK(run({"train", "--resume", "--out", "broken", "--label-smoothing", "0.2"})
            .says("translator: the run in broken began with --label-smoothing 0.1, not 0.2: --resume cannot "
                  "change it\n"));
}

TEST_CASE("the same with batches by tokens, gradients of several summed, and pieces drawn anew each epoch") {
  Arguments options = {"train", "--data",         short_pairs(), "--hidden",         "16", "--embedding",
                       "16",    "--epochs",       "4",           "--validate-every", "5",  "--threads",
                       "1",     "--batch-tokens", "300",         "--accumulate",     "2"};
  if (translator::Subwords::available())
    options = options + Arguments{"--subwords", "bpe", "--subword-size", "400", "--subword-dropout", "0.3"};
  REQUIRE(run(options + Arguments{"--out", "whole-tokens"}).code == 0);
  interrupted(options + Arguments{"--out", "broken-tokens"}, "broken-tokens", 4);
  run_well({"train", "--resume", "--out", "broken-tokens"});
  check_same_tensors(in_scratch("whole-tokens/last.safetensors"), in_scratch("broken-tokens/last.safetensors"));
  CHECK(read_file("whole-tokens/model.safetensors") == read_file("broken-tokens/model.safetensors"));
  CHECK(timeless("whole-tokens") == timeless("broken-tokens"));
  CHECK(events("whole-tokens", "validation").back().at("epoch") == 4);
  CHECK(run({"train", "--resume", "--out", "broken-tokens", "--batch-tokens", "200"})
            .says("began with --batch-tokens 300, not 200: --resume cannot change it\n"));
  CHECK(run({"train", "--batch-tokens", "200", "--batch-size", "3"}).code == 2);
}

TEST_CASE("a run that is interrupted before its first validation can be used and gone on with") {
  Arguments length = {"--epochs", "40", "--validate-every", "100000"};
  Running process(small_run("early", length));
  while (!process.ended() && !(exists("early/train.log") && events("early", "start").size() == 1))
    sleep_ms(2);
  sleep_ms(30);
  process.send(SIGTERM);
  Result r = process.wait();
  INFO(r.err);
  REQUIRE(r.code == 130);
  CHECK(run({"translate", "early", "she eats"}).code == 0);
  check_weights_of("early/last.safetensors", "early/model.safetensors");
  Result rest = run(small_run("early", {"--epochs", "2", "--resume"}));
  INFO(rest.err);
  CHECK(rest.code == 0);
}

TEST_CASE("kill -9 at any moment leaves a model that loads, and a run to go on with") {
  unsigned random = 12345;
  int killed = 0;
  for (int round = 0; round < 8; ++round) {
    bool go_on = exists("killed/last.safetensors");
    Running process(
        small_run("killed", {"--epochs", "30", "--validate-every", "2", go_on ? "--resume" : "--force"}));
    random = random * 1664525 + 1013904223;
    sleep_ms(20 + static_cast<int>(random >> 16) % 250);
    process.send(SIGKILL);
    Result r = process.wait();
    CAPTURE(r.err);
    CHECK((r.signal == SIGKILL || r.code == 0));
    killed += r.signal == SIGKILL;
    if (go_on) REQUIRE(exists("killed/model.safetensors"));
    for (const std::string name : {"killed/model.safetensors", "killed/last.safetensors"})
      if (exists(name)) CHECK_NOTHROW(gradus::load_safetensors(in_scratch(name)));
  }
  CHECK(killed > 0);
  Result r =
      run(small_run("killed", {"--epochs", "1", exists("killed/last.safetensors") ? "--resume" : "--force"}));
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(run({"translate", "killed", "she eats apples"}).code == 0);
}

TEST_CASE("--resume without a run to go on with") {
  Result r = run(small_run("never", {"--resume"}));
  CHECK(r.code == 1);
  CHECK(r.err == "translator: never: holds no run to go on with: never/last.safetensors is missing\n");
  CHECK_FALSE(exists("never"));
  CHECK(run({"train", "--resume", "--out", "never"}).err == r.err);
  REQUIRE(run({"quantize", trained_model(), "quantized"}).code == 0);
  CHECK(run({"train", "--resume", "--out", "quantized"}).err ==
        "translator: quantized: holds no run to go on with: quantized/last.safetensors is missing\n");
}

TEST_CASE("--resume refuses what contradicts the run, and says what the run has instead") {
  REQUIRE(run(small_run("settled", {"--epochs", "1", "-q"})).code == 0);
  const std::string head = "translator: the model in settled has ";
  const std::vector<std::pair<Arguments, std::string>> refused = {
      {{"--cell", "lstm"}, head + "--cell gru, not lstm: --resume cannot change it\n"},
      {{"--attention", "general"}, head + "--attention bahdanau, not general: --resume cannot change it\n"},
      {{"--no-input-feeding"}, head + "--input-feeding yes, not no: --resume cannot change it\n"},
      {{"--temperature", "0.5"}, head + "--temperature 1, not 0.5: --resume cannot change it\n"},
      {{"--case", "keep"}, head + "--case lower, not keep: --resume cannot change it\n"},
      {{"--dropout", "0.3", "--readout", "maxout"},
       head + "--dropout 0.1, not 0.3; --readout tanh, not maxout: --resume cannot change them\n"}};
  for (const auto& [more, text] : refused) {
    Result r = run(small_run("settled", more + Arguments{"--resume", "-q"}));
    CHECK(r.code == 2);
    CHECK(r.err == text);
  }
  const std::vector<std::pair<Arguments, std::string>> changed = {
      {{"--lr", "0.02"}, "--lr 0.01, not 0.02"},
      {{"--optimizer", "sgd"}, "--optimizer adam, not sgd"},
      {{"--batch-tokens", "100"}, "--batch-tokens 0, not 100"},
      {{"--max-length", "20"}, "--max-length 50, not 20"},
      {{"--swap"}, "--swap no, not yes"},
      {{"--valid", "short.tsv"}, "--valid nothing, not " + in_scratch("short.tsv")}};
  for (const auto& [more, text] : changed) {
    check_refused(Arguments{"train", "--resume", "-q", "--out", "settled"} + more, 2,
                  "the run in settled began with " + text + ": --resume cannot change it");
  }
  Result words = run(small_run("settled", {"--resume", "-q", "--min-count", "4"}));
  CHECK(words.code == 2);
  CHECK(words.says("translator: the model in settled knows "));
  CHECK(words.says(" words, --min-count would make it "));
  CHECK(words.says(": --resume cannot change them\n"));
  // What says the same is no contradiction: another name of the same attention, a default written out.
  CHECK(run(small_run("settled",
                      {"--resume", "-q", "--attention", "additive", "--cell", "gru", "--heads", "4"}))
            .code == 0);
}

TEST_CASE("a run goes on as what it began as: other origins, configurations and validation pairs are refused") {
  REQUIRE(run(small_run("begun", {"--epochs", "1", "-q", "--valid", short_pairs()})).code == 0);
  auto goes_on = [](const Arguments& more) {
    return run(Arguments{"train", "--resume", "--out", "begun", "--epochs", "2", "-q"} + more);
  };
  const std::string before = read_file("begun/training.json");
  trained_model();
  CHECK(goes_on({"--from", "trained"}).err == "translator: the run in begun began with --from nothing, not " +
                                                  in_scratch("trained") + ": --resume cannot change it\n");
  write_file("other.json", "{\"lr\": 5}");
  CHECK(goes_on({"--config", "other.json"}).code == 2);
  REQUIRE(shell("head -100 short.tsv > hundred.tsv").code == 0);
  CHECK(goes_on({"--valid", "hundred.tsv"}).err ==
        "translator: begun/last.safetensors: was made with other validation pairs: the run cannot go on from "
        "it\n");
  CHECK(read_file("begun/training.json") == before);
  REQUIRE(shell("cp -r begun nameless && rm nameless/training.json; cp -r begun bestless && rm "
                "bestless/model.safetensors")
              .code == 0);
  CHECK(run({"train", "--resume", "--out", "nameless"}).err ==
        "translator: nameless/training.json: is missing: --data names the pairs that the run learns from\n");
  check_refused(small_run("nameless", {"--resume", "--valid", short_pairs(), "--lr", "0.02", "-q"}), 1,
                "nameless/last.safetensors: was made with another --lr: the run cannot go on from it");
  CHECK(run({"train", "--resume", "--out", "bestless"}).says(
      "bestless/model.safetensors: is missing: the best model so far, kept until there is a better one\n"));
  CHECK(goes_on({}).code == 0);
}

TEST_CASE("guided attention goes on with the links it began with") {
  REQUIRE(shell("$T corpus -n 300 --max-length 7 --links -o with-links.tsv && "
                "awk -F'\\t' -v OFS='\\t' '{$3 = \"0-0\"; print}' with-links.tsv > otherwise.tsv")
              .code == 0);
  REQUIRE(run(small_run("on-links", {"--data", "with-links.tsv", "--guided-alignment", "1", "--epochs", "1",
                                     "-q"})).code ==
          0);
  CHECK(run({"train", "--resume", "--out", "on-links", "--epochs", "2", "-q", "--data", "otherwise.tsv"}).err ==
        "translator: on-links/last.safetensors: was made with other links of words: the run cannot go on from "
        "it\n");
  CHECK(run({"train", "--resume", "--out", "on-links", "--epochs", "2", "-q"}).code == 0);
}
