// tools/experiments as a program: every experiment's orders hold in small, what is finished is not run again,
// and what is interrupted leaves nothing.

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include <common/progress.h>
#include <fmt/core.h>
#include <gradus/parallel.h>
#include <papers/experiment.h>
#include <papers/log.h>

#include "../cli/program.h"
#include "../quick_doctest.h"

namespace {

namespace fs = std::filesystem;

cli::Result experiments(const cli::Arguments& arguments, const cli::Setting& setting = {}) {
  using cli::operator+;
  return cli::run_program(cli::Arguments{PAPERS} + arguments, setting);
}

const papers::Experiment& experiment(const std::string& name) {
  const auto& all = papers::experiments();
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.name == name; });
  REQUIRE(at != all.end());
  return *at;
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
  // A name beside all takes nothing away.
  CHECK(cli::count(experiments({"reader", "all", "--draw", "--out", "quick"}).out, ".md\n") ==
        papers::experiments().size());
}

TEST_CASE("experiments: a page is made of the runs that were finished before an interruption") {
  for (const char* attention : {"none", "bahdanau"}) {
    const papers::Log log{{{"attention", attention}}, 1, {}, {{{"bleu", 50}, {"exact_match", 0.5}}}};
    CHECK(experiment("need").page({log}).findings.size() == 3);
  }
}

TEST_CASE("feedforward: whether the paper's epochs lie within those of the seeds") {
  auto log = [](uint64_t seed, int epochs, double right) {
    return papers::Log{{{"task", "multiply"}, {"pool", "mean"}, {"length", 100}},
                       seed,
                       {},
                       {{{"event", "result"}, {"epochs", epochs}, {"right", right}, {"parameters", 10501}}}};
  };
  const papers::Experiment& e = experiment("feedforward");
  // The paper's 2 epochs lie between 2 and 4, not between 3 and 4.
  const papers::Page page = e.page({log(1, 2, 1), log(2, 4, 1)});
  CHECK(page.tables[0].rows[1][2] == "3.0 ± 1.4 (2)");
  CHECK(page.findings.back().holds);
  const papers::Page slower = e.page({log(1, 3, 1), log(2, 4, 1)});
  CHECK(slower.tables[0].rows[1][2] == "3.5 ± 0.7 (2)");
  CHECK_FALSE(slower.findings.back().holds);
  // Stopped after 2 it takes more.
  CHECK_FALSE(e.page({log(1, 2, 0)}).findings.back().holds);
}

TEST_CASE("experiments: what takes longer than ten minutes is run where asked for, and stays on the page") {
  const cli::Result usual = experiments({}), longer = experiments({"--long"});
  const auto line = [](const cli::Result& r) {
    const size_t begin = r.out.find("  feedforward ");
    return r.out.substr(begin, r.out.find('\n', begin) - begin);
  };
  CHECK(line(usual) != line(longer));
  // A finished log of all: the usual command finds its runs in it, and drops none.
  std::string logs;
  size_t runs = 0, of_long = 0;
  for (const papers::Run& run : experiment("feedforward").runs(false, 1)) {
    const papers::json begin = {{"event", "run"}, {"setting", run.setting}, {"seed", 1},
                                {"commands", papers::typed(run.commands)}};
    logs += begin.dump() + "\n" + R"({"event":"result","epochs":1,"right":1,"parameters":10602})" + "\n" +
            R"({"event":"end","seconds":1})" + "\n";
    ++runs;
    of_long += run.longer;
  }
  CHECK(of_long == 2);
  fs::create_directory(cli::in_scratch("longer"));
  cli::write_file("longer/feedforward.jsonl", logs);
  const cli::Result r = experiments({"feedforward", "--seeds", "1", "--out", "longer"});
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(cli::read_file("longer/feedforward.jsonl") == logs);
  const std::string page = cli::read_file("longer/feedforward.md");
  CHECK(page.find("    tools/experiments feedforward --long\n") != std::string::npos);
  CHECK(page.find(fmt::format("{} runs, seeds 1", runs)) != std::string::npos);
  CHECK(page.find("| T = 5000 |") != std::string::npos);
}

TEST_CASE("experiments: a log that was written by nobody is named") {
  fs::create_directory(cli::in_scratch("strange"));
  cli::write_file("strange/reader.jsonl",
                  R"({"event":"run","setting":{"head":"uniform"},"seed":1,"commands":["translator"]})"
                  "\n"
                  R"({"event":"end","seconds":1})"
                  "\n");
  const cli::Result r = experiments({"reader", "--draw", "--out", "strange"});
  CHECK(r.code == 1);
  CHECK(r.says("experiments: strange/reader.jsonl: has what no run of reader writes: "));
  CHECK(experiments({"all", "--draw", "--out", "strange"}).code == 1);
  fs::remove(cli::in_scratch("strange/reader.jsonl"));
  CHECK(experiments({"all", "--draw", "--out", "strange"}).code == 0);  // of the logs that are there
  cli::write_file("strange/copy.jsonl", R"({"event":"run","setting":{},"seed":1,"commands":["gallery-copy"]})"
                                        "\n"
                                        R"({"event":"end","seconds":1})"
                                        "\n");
  CHECK(experiments({"copy", "--draw", "--out", "strange"})
            .says("strange/copy.jsonl: has what no run of copy writes: no length was tested"));
}

TEST_CASE("experiments: without a name, what there is; what makes no sense ends with status 2") {
  const cli::Result list = experiments({});
  CHECK(list.code == 0);
  for (const papers::Experiment& e : papers::experiments()) {
    double seconds = 0;
    for (const papers::Run& run : e.runs(false, 3)) seconds += run.longer ? 0 : run.seconds;
    const std::string takes = "about " + translator::format_duration(seconds / gradus::available_threads());
    const size_t line = list.out.find("  " + e.name + " ");
    REQUIRE(line != std::string::npos);
    CHECK(list.out.substr(line, list.out.find('\n', line) - line).ends_with(takes));
  }
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

TEST_CASE("experiments: a hangup that is ignored, as under nohup, interrupts nothing") {
  const std::string temporary = cli::in_scratch("temporary-of-nohup");
  fs::create_directory(temporary);
  const cli::Result r =
      cli::run_program({"/bin/sh", "-c",
                        "trap '' HUP; \"$P\" hops --quick --seeds 1 --out nohup & p=$!\n"
                        "while [ -z \"$(ls \"$TMPDIR\")\" ]; do sleep 0.05; done; kill -HUP $p; wait $p"},
                       {.environment = {{"P", PAPERS}, {"TMPDIR", temporary}}});
  CHECK(r.code == 0);
  CHECK(cli::exists("nohup/hops.md"));
}

TEST_CASE("experiments: the pages of docs/experiments are those of their logs, and the runs those of today") {
  fs::copy(EXPERIMENTS, cli::in_scratch("docs"));
  REQUIRE(experiments({"all", "--draw", "--out", "docs"}).code == 0);
  for (const auto& file : fs::directory_iterator(EXPERIMENTS)) {
    const std::string name = file.path().filename().string();
    CAPTURE(name);
    CHECK(cli::read_file("docs/" + name) == cli::read_file(file.path().string()));
  }
  for (const papers::Experiment& e : papers::experiments()) {
    CAPTURE(e.name);
    const papers::LogFile log(cli::in_scratch("docs/" + e.name + ".jsonl"));
    std::vector<papers::Run> runs = e.runs(false, 3);
    CHECK(log.others(runs) == 0);
    for (const papers::Run& run : runs) CHECK((run.longer || log.has(run)));
  }
}

TEST_CASE("copy: nine in ten with every seed, not with the last one alone") {
  auto log = [](uint64_t seed, double share) {
    return papers::Log{{{"task", "copy"}, {"model", "location-aware"}},
                       seed,
                       {},
                       {{{"event", "result"}, {"symbols_60", share}, {"sequences_60", share}}}};
  };
  const papers::Experiment& e = experiment("copy");
  CHECK(e.page({log(1, 0.92), log(2, 0.95)}).findings.back().holds);
  CHECK_FALSE(e.page({log(1, 0.5), log(2, 0.95)}).findings.back().holds);
}

TEST_CASE("guided: whether an alignment error of 0.05 is reached") {
  std::vector<papers::Log> logs = papers::LogFile(std::string(EXPERIMENTS) + "/guided.jsonl").logs();
  auto reached = [&](double error) {
    for (papers::Log& log : logs)
      if (log.setting.contains("longer")) log.lines.back()["aer"] = error;
    const auto findings = experiment("guided").page(logs).findings;
    const auto at = std::find_if(findings.begin(), findings.end(), [](const papers::Finding& f) {
      return f.text.starts_with("An alignment error of 0.05 is reached");
    });
    REQUIRE(at != findings.end());
    return at->holds;
  };
  CHECK(reached(0.04));
  CHECK_FALSE(reached(0.06));
}
