// `translator train`: what it leaves behind, and that it is the same again.

#include <doctest/doctest.h>

#include <cmath>

#include "program.h"

using namespace cli;

TEST_CASE("train leaves a whole model directory and a log of its validations; progress is on stderr") {
  Result r = run(small_run("fresh", {"--epochs", "2"}));
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(r.out.empty());
  for (const char* name :
       {"config.json", "source.vocab", "target.vocab", "model.safetensors", "last.safetensors", "train.log"})
    CHECK_MESSAGE(exists(std::string("fresh/") + name), name);
  for (const auto& entry : std::filesystem::directory_iterator(scratch() / "fresh"))
    CHECK_MESSAGE(entry.path().extension() != ".tmp", entry.path().string());
  CHECK(r.err.find('\r') == std::string::npos);
  CHECK(r.err.find('\x1b') == std::string::npos);
  CHECK(r.says("short.tsv: 1200 of 1200 lines read\n"));
  CHECK(r.says("no validation data given: 60 pairs held out of the training data\n"));
  CHECK(r.says(" parameters, 1 thread\n"));
  CHECK(r.says("  ->  "));
  CHECK(r.says("is in fresh.\n"));
  CHECK(count(r.err, "perplexity") == 2);
  auto words = lines_of(read_file("fresh/source.vocab"));
  REQUIRE(words.size() > 100);
  CHECK(std::vector<std::string>(words.begin(), words.begin() + 4) ==
        std::vector<std::string>{"<unk>", "<pad>", "<s>", "</s>"});
  auto config = nlohmann::json::parse(read_file("fresh/config.json"));
  CHECK(config.at("network").at("hidden_size") == 32);
  CHECK(config.at("network").at("source_vocabulary") == words.size());

  auto log = events("fresh");
  REQUIRE(log.size() == 3);
  CHECK(log[0].at("event") == "start");
  CHECK(log[0].at("pairs") == 1140);
  CHECK(log[0].at("epochs") == 2);
  for (int epoch : {1, 2}) {
    const auto& v = log[static_cast<size_t>(epoch)];
    CHECK(v.at("event") == "validation");
    CHECK(v.at("epoch") == epoch);
    CHECK(v.at("step") == epoch * 36);
    CHECK(v.at("perplexity").get<double>() == doctest::Approx(std::exp(v.at("valid_loss").get<double>())));
    CHECK(v.at("samples").size() == 3);
  }
  CHECK(log[2].at("valid_loss") < log[1].at("valid_loss"));
  CHECK(log[2].at("train_loss") < log[1].at("train_loss"));
}

TEST_CASE("train -q says nothing when nothing is wrong") {
  Result r = run(small_run("quiet", {"--epochs", "1", "-q"}));
  CHECK(r.code == 0);
  CHECK(r.out + r.err == "");
}

TEST_CASE("the same seed and threads give the same bytes; another seed does not") {
  for (const char* out : {"same1", "same2"})
    REQUIRE(run(small_run(out, {"--epochs", "1", "--threads", "2"})).code == 0);
  CHECK(read_file("same1/model.safetensors") == read_file("same2/model.safetensors"));
  CHECK(read_file("same1/last.safetensors").size() == read_file("same2/last.safetensors").size());
  REQUIRE(run(small_run("same3", {"--epochs", "1", "--threads", "2", "--seed", "43"})).code == 0);
  CHECK(read_file("same1/model.safetensors") != read_file("same3/model.safetensors"));
}

TEST_CASE("one thread and two learn the same, up to rounding") {
  // Without dropout: each thread draws masks of its own.
  for (const char* threads : {"1", "2"})
    REQUIRE(run(small_run(std::string("threads") + threads,
                          {"--epochs", "1", "--dropout", "0", "--threads", threads}))
                .code == 0);
  auto one = events("threads1", "validation"), two = events("threads2", "validation");
  REQUIRE(one.size() == 1);
  REQUIRE(two.size() == 1);
  for (const char* key : {"train_loss", "valid_loss"})
    CHECK(std::abs(one[0].at(key).get<double>() - two[0].at(key).get<double>()) < 1e-4);
}

TEST_CASE("every attention trains and translates") {
  for (const std::string attention : {"bahdanau", "dot", "general", "concat", "none"}) {
    CAPTURE(attention);
    Result r = run(small_run("by_" + attention, {"--epochs", "1", "--attention", attention}));
    CHECK(r.code == 0);
    auto config = nlohmann::json::parse(read_file("by_" + attention + "/config.json"));
    CHECK(config.at("network").at("attention") == attention);
    auto log = events("by_" + attention, "validation");
    REQUIRE(log.size() == 1);
    CHECK(log[0].at("valid_loss") < 6);  // log of the vocabulary's size is about 6
    Result t = run({"translate", "by_" + attention, "she eats apples", "--attention-map", "--alignments"});
    CHECK(t.code == 0);
    bool draws = attention != "none";
    CHECK((lines_of(t.out).size() > 1) == draws);
    CHECK(t.err == (draws ? "" : "translator: this model has no attention to draw\n"));
  }
}

TEST_CASE("--max-minutes ends a run; without epochs it is the clock alone") {
  Result r = run(small_run("clock", {"--max-minutes", "0.01"}));
  CHECK(r.code == 0);
  auto log = events("clock");
  REQUIRE(log.size() >= 2);
  CHECK(log[0].at("epochs") == 0);
  CHECK(log.back().at("lr").get<double>() < 0.01 * 0.051);  // down to a twentieth
}

TEST_CASE("a model directory is not overwritten by accident") {
  REQUIRE(run(small_run("mine", {"--epochs", "1", "-q"})).code == 0);
  std::string before = read_file("mine/model.safetensors"), log = read_file("mine/train.log");
  Result again = run(small_run("mine", {"--epochs", "1"}));
  CHECK(again.code == 1);
  CHECK(again.err ==
        "translator: mine: holds a model already: --resume goes on with it, --force replaces it, --out names "
        "another place\n");
  CHECK(read_file("mine/model.safetensors") == before);
  CHECK(read_file("mine/train.log") == log);
  std::filesystem::remove(scratch() / "mine/last.safetensors");
  CHECK(run(small_run("mine", {"--epochs", "1"})).code == 1);
  // With --force, bad data still costs nothing.
  CHECK(run({"train", "--data", "missing.tsv", "--out", "mine", "--force"}).code == 1);
  CHECK(read_file("mine/model.safetensors") == before);
  CHECK(run(small_run("mine", {"--epochs", "1", "--force", "--seed", "7", "-q"})).code == 0);
  CHECK(read_file("mine/model.safetensors") != before);
  CHECK(events("mine", "start").size() == 1);
}
