// Several models trained at once: the same as each alone, and one directory to translate with.

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <common/json_text.h>

#include "../quick_doctest.h"
#include "program.h"

using namespace cli;

namespace {

// As small_run, of two models; `threads` for both.
Arguments small_pair(const std::string& out, const Arguments& more = {}, const std::string& threads = "2",
                     const std::string& kinds = "gru,gru") {
  Arguments a = small_run(out, more);
  for (size_t i = 0; i + 1 < a.size(); ++i)
    if (a[i] == "--threads") a[i + 1] = threads;
  return a + Arguments{"--together", kinds};
}

std::string weights(const std::string& directory) { return read_file(directory + "/model.safetensors"); }

}  // namespace

TEST_CASE("models trained together are those that each would be alone, and translate as one") {
  Result r = run_well(small_pair("together", {"--epochs", "2", "--seed", "7"}));
  CHECK(r.says("together/1: validation loss "));
  CHECK(r.says("together/2: validation loss "));
  CHECK(r.says("Together they are together: " TRANSLATOR " translate together\n"));
  CHECK(count(r.err, "1200 of 1200 lines read") == 1);
  for (int i : {1, 2}) {
    const std::string alone = "alone" + std::to_string(i), member = "together/" + std::to_string(i);
    REQUIRE(run(small_run(alone, {"--epochs", "2", "--seed", std::to_string(6 + i)})).code == 0);
    CHECK(weights(member) == weights(alone));
  }
  CHECK(weights("together/1") != weights("together/2"));

  const Setting lines{.input = "she sings\nhe sleeps\nthey do not like apples\n"};
  auto translation = [&](const std::string& models) {
    Result t = run({"translate", models, "-k", "3", "--scores"}, lines);
    CHECK_MESSAGE(t.code == 0, t.err);
    return t.out;
  };
  CHECK(translation("together") == translation("together/1,together/2"));
  CHECK(translation("together=0.5,alone1") == translation("together/1=0.5,together/2=0.5,alone1"));
  CHECK(translation("together") != translation("together/1"));
  CHECK(run({"score", "together", short_pairs()}).err ==
        "translator: together/config.json: is of one model, and here are several: name one of them, "
        "together/1\n");
}

TEST_CASE("models trained together go on where a signal stopped them, to the same bytes") {
  const Arguments more = {"--epochs", "4"};
  REQUIRE(run(small_pair("together-whole", more)).code == 0);
  // The signal goes to the one that was called alone: it tells the others.
  Result r = interrupted(small_pair("together-broken", more), "together-broken", 1, SIGTERM, {"/1", "/2"});
  CHECK(r.says("Interrupted; everything is saved in together-broken. Go on with: " TRANSLATOR
               " train --resume --out together-broken\n"));
  CHECK(validations("together-broken/1") < 4);
  REQUIRE(run({"train", "--resume", "--out", "together-broken"}).code == 0);
  for (const char* member : {"/1", "/2"})
    CHECK(weights(std::string("together-broken") + member) == weights(std::string("together-whole") + member));
  // Nobody is asked for more threads than there are processors, where that was given when it began.
  REQUIRE(run(small_pair("together-five", {"--epochs", "1"}, "5", "gru,gru,gru,gru,gru")).code == 0);
  CHECK(run({"train", "--resume", "--out", "together-five", "--epochs", "2"}).code == 0);
  CHECK(validations("together-five/5") == 2);
  CHECK(run({"translate", "together-five", "she sings"}).code == 0);
  std::filesystem::remove_all(scratch_path() / "together-five/3");
  const std::string missing =
      "translator: together-five/3: is missing, and together-five/4/config.json is there\n";
  CHECK(run({"translate", "together-five", "she sings"}).err == missing);
  CHECK(run({"train", "--resume", "--out", "together-five"}).err == missing);
}

TEST_CASE("models whose parent is killed save what they have and stop") {
  Running process(small_pair("orphans", {"--epochs", "5000"}));
  while (validations("orphans/1") == 0 || validations("orphans/2") == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  process.send(SIGKILL);
  process.wait();
  for (const char* member : {"orphans/1", "orphans/2"})
    for (int tenths = 0; tenths < 600 && count(read_file(std::string(member) + "/train.log"), "\"end\"") == 0;
         ++tenths)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (const char* member : {"orphans/1", "orphans/2"})
    CHECK(count(read_file(std::string(member) + "/train.log"), "\"finished\":false") == 1);
}

TEST_CASE("a model that fails stops the others, and is named") {
  // The Transformer's heads have no equal parts; the other one would take minutes.
  Result r = run(small_pair("failing", {"--epochs", "5000", "--heads", "5"}, "2", "gru,transformer"));
  CHECK(r.code == 2);
  CHECK(r.says("translator: --heads 5 does not divide --d-model 32: each head has an equal part of it\n"));
  CHECK(r.says("translator: model 2 of 2, failing/2, ended with status 2\n"));
}

TEST_CASE("of models trained together each takes the options of its kind") {
  const Arguments of_both = {"--epochs", "1", "--cell", "lstm", "--positions", "learned", "--heads", "2"};
  run_well(small_pair("of-each", of_both, "2", "gru,transformer"));
  CHECK(read_file("of-each/1/config.json").find("\"cell\": \"lstm\"") != std::string::npos);
  CHECK(read_file("of-each/2/config.json").find("\"positions\": \"learned\"") != std::string::npos);
  CHECK(read_file("of-each/2/config.json").find("\"num_heads\": 2") != std::string::npos);
  CHECK(run({"train", "--resume", "--epochs", "2", "--out", "of-each", "-q"}).code == 0);
  CHECK(validations("of-each/2") == 2);
  std::string longer;
  for (int i = 0; i < 256; ++i) longer += "she ";
  check_refused({"translate", "of-each", longer}, 1,
                "the sentence: has 256 words, but this model has learned 256 positions: 255 words and </s>");
}

TEST_CASE("models trained together share the threads that a file says, and begin with its seed") {
  write_file("two.json", "{\"seed\": 7, \"threads\": 2}");
  Arguments a = small_pair("by-file", {"--epochs", "1", "--config", "two.json"});
  const auto threads = std::find(a.begin(), a.end(), "--threads");
  a.erase(threads, threads + 2);
  run_well(a);
  for (int i : {1, 2}) {
    const auto own = json_text::parse(read_file("by-file/" + std::to_string(i) + "/training.json"));
    CHECK(own.at("seed") == 6 + i);
    CHECK(own.at("threads") == 1);
  }
}

TEST_CASE("what cannot be trained together is said before anything begins") {
  check_refused(small_pair("nowhere", {}, "1"), 2,
                "--together of 2 models needs --threads 2 or more, one for each");
  check_refused({"train", "--together", "gru", "--out", "nowhere"}, 2,
                "--together names two models or more");
  check_refused({"train", "--data", "-", "--together", "gru,gru", "--out", "nowhere"}, 2,
                "--together needs pairs in a file: standard input can be read once");
  check_refused(small_pair("nowhere", {"--positions", "none"}), 2,
                "--positions is of a transformer: a recurrent model has nothing for it");
  check_refused(small_pair("nowhere", {"--print-config"}), 2,
                "--together has no --print-config: each of its models has a training.json");
  check_refused({"train", "--resume", "--out", trained_model(), "--together", "gru,gru"}, 2,
                "--together is what the run was begun with: --resume takes it from there");
  CHECK_FALSE(exists("nowhere"));

  const std::string model = trained_model();
  check_refused(small_pair(model, {"--force"}), 1,
                model + ": holds a model itself: --out names a place for several");
  std::filesystem::create_directories(scratch_path() / "three/1");
  std::filesystem::create_directories(scratch_path() / "three/2");
  std::filesystem::create_directories(scratch_path() / "three/3");
  write_file("three/1/config.json", "{}");
  check_refused(small_pair("three", {"--force"}), 1,
                "three/3: is there already, and would be one of 2 models: --out names another place");
  check_refused(small_run("three", {"--force"}), 1,
                "three: holds several models, 1 and on: --out names another place, or one of them");
  std::filesystem::create_directories(scratch_path() / "numbered/1");  // of somebody's own, no model
  CHECK(run(small_run("numbered", {"--epochs", "1"})).code == 0);
}
