// Which models of a run are its best: --metric, --patience, --keep, --average.

#include <algorithm>
#include <filesystem>

#include "../quick_doctest.h"
#include "program.h"

using namespace cli;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> kept_of(const std::string& out) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(scratch_path() / out / "kept"))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("a run with a metric, patience, kept models and their mean goes on to the same bits") {
  const Arguments options = {"--epochs",   "3",  "--validate-every", "9", "--metric",  "bleu",
                             "--patience", "30", "--keep",           "3", "--average", "--lr",
                             "0.03"};
  REQUIRE(run(small_run("chosen", options)).code == 0);
  interrupted(small_run("halted", options), "halted", 5);
  Result rest = run(small_run("halted", options + Arguments{"--resume"}));
  INFO(rest.err);
  CHECK(rest.code == 0);
  CHECK(read_file("chosen/model.safetensors") == read_file("halted/model.safetensors"));
  REQUIRE(kept_of("chosen").size() == 3);
  CHECK(kept_of("chosen") == kept_of("halted"));
  for (const std::string& name : kept_of("chosen")) {
    CHECK(read_file("chosen/kept/" + name + "/model.safetensors") ==
          read_file("halted/kept/" + name + "/model.safetensors"));
    CHECK(run({"translate", "chosen/kept/" + name, "she eats"}).code == 0);
  }
  CHECK(run(small_run("halted", {"--resume", "--lr", "0.03", "--metric", "exact"}))
            .says("the run in halted began with --metric bleu, not exact: --resume cannot change it\n"));
  // A new run leaves nothing of the old one.
  REQUIRE(run(small_run("halted", {"--epochs", "1", "--force"})).code == 0);
  CHECK_FALSE(exists("halted/kept"));
  CHECK(run(small_run("halted", {"--resume", "--metric", "bleu"}))
            .says("began with --metric loss, not bleu: --resume cannot change it\n"));
}

TEST_CASE("a run ends where its patience does, and more of it prolongs the run") {
  const Arguments still = {"--lr", "1e-30", "--epochs", "9", "--validate-every", "6"};
  auto with = [&](const Arguments& more) { return run(small_run("patient", still + more)); };
  Result r = with({"--patience", "2"});
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(r.says("No better loss in 2 validations: stopped at step 18.\n"));
  CHECK(events("patient", "validation").size() == 3);
  CHECK(events("patient", "end").back().at("finished") == true);
  CHECK(
      with({"--patience", "2", "--resume"}).says("The run was over already: more --patience prolongs it.\n"));
  CHECK(with({"--patience", "3", "--resume"}).says("No better loss in 3 validations: stopped at step 24.\n"));
}

TEST_CASE("what looks at validation pairs needs some") {
  write_file("few.tsv", "a b\tc d\ne f\tg h\n");
  for (const Arguments& looks : {Arguments{"--patience", "2"}, {"--schedule", "plateau"}}) {
    check_refused(
        Arguments{"train", "--data", "few.tsv", "--out", "blind", "-q", "--subwords", "none"} + looks, 2,
        "--metric, --patience, --keep, --average and --schedule plateau look at validation pairs, and none "
        "could be held out: --valid names some");
    CHECK_FALSE(exists("blind"));
  }
}
