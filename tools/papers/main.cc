// Runs what papers claim, and writes a page on what came out. tools/experiments builds and starts it.

#include <common/command_line.h>
#include <common/error.h>
#include <common/progress.h>
#include <common/tell.h>
#include <fmt/core.h>
#include <gradus/parallel.h>
#include <translator/model/files.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "experiment.h"
#include "log.h"
#include "page.h"
#include "running.h"

namespace papers {

namespace {

struct Options {
  std::vector<std::string> names;
  std::string out;
  int seeds = 3;
  bool quick = false, draw = false, longer = false;
};

std::string logs_of(const Options& o, const Experiment& e) {
  return translator::in(o.out, e.name + ".jsonl");
}

// What is asked for, and of the longer runs what is finished.
std::vector<Run> runs_of(const Options& o, const Experiment& e, const LogFile& file) {
  std::vector<Run> runs = e.runs(o.quick, o.seeds);
  std::erase_if(runs, [&](const Run& run) { return run.longer && !o.longer && !file.has(run); });
  return runs;
}

// What each experiment shows, and how long it takes.
void list(const Options& o) {
  const double cores = gradus::available_threads();
  for (const Experiment& e : experiments()) {
    double seconds = 0;
    for (const Run& run : e.runs(o.quick, o.seeds))
      if (o.longer || !run.longer) seconds += run.seconds;
    fmt::print("  {:<14} {:<70} about {}\n", e.name, e.shows, translator::format_duration(seconds / cores));
  }
  fmt::print("\ntools/experiments NAME runs one and writes its page into {}; all runs all.\n", o.out);
}

Page page_of(const Experiment& e, const LogFile& file) {
  try {
    return e.page(file.logs());
  } catch (const std::exception& wrong) {
    throw translator::InputError(file.path(), 0,
                                 fmt::format("has what no run of {} writes: {}", e.name, wrong.what()));
  }
}

void draw(const Options& o, const Experiment& e, const LogFile& file) {
  const Page page = page_of(e, file);
  translator::write_file(translator::in(o.out, e.name + ".svg"), page.svg);
  const std::string path = translator::in(o.out, e.name + ".md");
  translator::write_file(path, markdown(e, page, file.logs()));
  for (const Finding& f : page.findings)
    fmt::print("  {:<14} {}\n", !f.holds ? "does not hold" : f.clear ? "holds" : "holds by means", f.text);
  fmt::print("{}\n", path);
}

void draw_index(const Options& o) {
  std::vector<std::string> rows;
  for (const Experiment& e : experiments())
    if (std::filesystem::exists(logs_of(o, e)))
      rows.push_back(index_row(e, page_of(e, LogFile(logs_of(o, e)))));
  translator::write_file(translator::in(o.out, "README.md"), index_of(rows));
}

int run(Options o) {
  if (o.out.empty())
    o.out = std::string(PAPERS_SOURCE) + (o.quick ? "/experiments-quick" : "/docs/experiments");
  if (o.names.empty()) {
    list(o);
    return 0;
  }
  auto names = [&](const std::string& name) {
    return std::find(o.names.begin(), o.names.end(), name) != o.names.end();
  };
  for (const Experiment& e : experiments()) {
    const bool asked = names(e.name);
    if (!asked && !names("all")) continue;
    if (o.draw && !asked && !std::filesystem::exists(logs_of(o, e))) continue;
    if (!o.draw) translator::make_directory(o.out);
    LogFile file(logs_of(o, e));
    if (!o.draw && !run_missing(e.name, runs_of(o, e, file), file)) {
      translator::tell("experiments: interrupted; the same command goes on with what is not finished\n");
      return 130;
    }
    if (file.logs().empty())
      throw std::runtime_error(e.name + ": nothing to draw: run it without --draw first");
    draw(o, e, file);
  }
  draw_index(o);
  return 0;
}

}  // namespace
}  // namespace papers

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);
  command_line::Program app{"Runs what papers on attention claim, and writes a page with a picture on each.",
                            "experiments"};
  papers::Options o;
  std::vector<std::string> names = {"all"};
  for (const papers::Experiment& e : papers::experiments()) names.push_back(e.name);
  app.option("name", o.names, "Experiments, or all (default: list them)")
      .one_of(names)
      .expected(0, -1)
      .type_name("");
  app.flag("--quick", o.quick,
           "Seconds instead of minutes: small runs that show the orders, not the numbers");
  app.flag("--long", o.longer,
           "Also what takes longer than ten minutes: the longest of feedforward");
  app.option("--seeds", o.seeds, "Runs of each setting").range(1, 100).show_default();
  app.option("--out", o.out,
             fmt::format("Where pages, pictures and logs go (default: docs/experiments in {}; of --quick "
                         "experiments-quick there)",
                         PAPERS_SOURCE))
      .type_name("DIR");
  app.flag("--draw", o.draw, "Only make the pages anew, of the logs that are there");
  app.footer(
      "A run that is finished is not run again: Ctrl-C, and the same command goes on. NAME.jsonl has the "
      "logs; without it all is run anew.\nExit status: 0 done, 1 a run failed, 2 wrong usage, 130 "
      "interrupted.");
  try {
    return app.end(app.parse(argc, argv) ? papers::run(o) : app.report());
  } catch (const std::exception& e) {
    translator::tell("experiments: {}\n", translator::what_of(e));
    return 1;
  }
}
