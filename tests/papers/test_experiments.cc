// tools/experiments as a program: every experiment's orders hold in small, what is finished is not run again,
// and what is interrupted leaves nothing.

#include <signal.h>

#include <filesystem>
#include <string>

#include <papers/experiment.h>

#include "../cli/program.h"
#include "../quick_doctest.h"

namespace {

namespace fs = std::filesystem;

cli::Result experiments(const cli::Arguments& arguments, const cli::Setting& setting = {}) {
  cli::Arguments words = {PAPERS};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return cli::run_program(words, setting);
}

}  // namespace

TEST_CASE("experiments: quick runs hold the orders") {
  for (const papers::Experiment& e : papers::experiments()) {
    CAPTURE(e.name);
    const cli::Result r = experiments({e.name, "--quick", "--out", "quick"});
    INFO(r.err);
    REQUIRE(r.code == 0);
    const std::string page = cli::read_file("quick/" + e.name + ".md");
    INFO(page);
    CHECK(cli::count(page, "- Holds:") >= 1);
    CHECK(cli::count(page, "Does not hold") == 0);
    CHECK(page.find("nan") == std::string::npos);
    CHECK(cli::read_file("quick/" + e.name + ".svg").starts_with("<svg"));
    CHECK(cli::read_file("quick/README.md").find("[" + e.name + "](" + e.name + ".md)") != std::string::npos);

    // The log would not be the same: it has times in it.
    const std::string log = cli::read_file("quick/" + e.name + ".jsonl");
    CHECK(experiments({e.name, "--quick", "--out", "quick"}).code == 0);
    CHECK(cli::read_file("quick/" + e.name + ".jsonl") == log);
    fs::remove(cli::in_scratch("quick/" + e.name + ".md"));
    CHECK(experiments({e.name, "--draw", "--out", "quick"}).code == 0);
    CHECK(cli::read_file("quick/" + e.name + ".md") == page);
  }
}

TEST_CASE("experiments: without a name, what there is; what makes no sense ends with status 2") {
  const cli::Result list = experiments({});
  CHECK(list.code == 0);
  for (const papers::Experiment& e : papers::experiments())
    CHECK(list.out.find("  " + e.name) != std::string::npos);
  const cli::Result unknown = experiments({"feedforwrd"});
  CHECK(unknown.code == 2);
  CHECK(unknown.says("hint: feedforward?"));
  const cli::Result nothing = experiments({"feedforward", "--draw", "--out", "nothing"});
  CHECK(nothing.code == 1);
  CHECK(nothing.says("nothing to draw: run it without --draw first"));
  CHECK_FALSE(cli::exists("nothing"));
}

TEST_CASE("experiments: what is interrupted leaves no log and no scratch directory") {
  const std::string temporary = cli::in_scratch("temporary");
  fs::create_directory(temporary);
  // 100 seeds take minutes; the signal comes when a run has begun.
  const cli::Result r =
      cli::run_program({"/bin/sh", "-c",
                        "\"$P\" feedforward --quick --seeds 100 --out interrupted & p=$!\n"
                        "while [ -z \"$(ls \"$TMPDIR\")\" ]; do sleep 0.05; done; kill -TERM $p; wait $p"},
                       {.environment = {{"P", PAPERS}, {"TMPDIR", temporary}}});
  CHECK(r.code == 130);
  CHECK(r.says("interrupted; the same command goes on"));
  CHECK(fs::is_empty(temporary));
  CHECK_FALSE(cli::exists("interrupted/feedforward.jsonl"));
  CHECK_FALSE(cli::exists("interrupted/feedforward.md"));
}
