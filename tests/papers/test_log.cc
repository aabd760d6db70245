// Logs on disk, and what is said of an order.

#include <papers/experiment.h>
#include <papers/log.h>
#include <papers/page.h>
#include <papers/running.h>
#include <papers/translations.h>
#include <common/error.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "../about.h"
#include "../cli/program.h"
#include "../quick_doctest.h"
#include "../scratch.h"
#include "../thrown.h"

using papers::Finding;
using papers::json;
using papers::Log;
using papers::LogFile;
using papers::Run;

namespace {

Run run_of(uint64_t seed) {
  return {{{"task", "add"}}, seed, {{"gallery-feedforward", "--seed", std::to_string(seed)}}, 1};
}

Log log_of(uint64_t seed, const json& last) {
  const Run run = run_of(seed);
  return {run.setting, seed, papers::typed(run.commands), {{{"event", "epoch"}}, last}, 1.5};
}

}  // namespace

TEST_CASE("logs: they come back as they were written, in the order of the list") {
  const std::string path = cli::in_scratch("order.jsonl");
  const std::vector<Run> all = {run_of(1), run_of(2)};
  LogFile file(path);
  CHECK(file.logs().empty());
  file.add(log_of(2, {{"right", 0.5}, {"no", nullptr}, {"done", true}}), all);
  CHECK(file.has(all[1]));
  CHECK_FALSE(file.has(all[0]));
  file.add(log_of(1, {{"right", 0.25}}), all);

  const LogFile again(path);
  REQUIRE(again.logs().size() == 2);
  CHECK(again.logs()[0].seed == 1);
  CHECK(again.logs()[1].seed == 2);
  CHECK(again.logs()[1].lines.size() == 2);
  CHECK(again.logs()[1].seconds == about(1.5));
  CHECK(papers::results(papers::where(again.logs(), {{"task", "add"}}), "right") ==
        std::vector<double>{0.25, 0.5});
  CHECK(papers::where(again.logs(), {{"task", "multiply"}}).empty());
  CHECK(papers::where(again.logs(), {{"length", 5}}).empty());
  CHECK(again.logs()[1].result("done") == 1);
  CHECK(std::isnan(again.logs()[1].result("no")));
  CHECK(std::isnan(again.logs()[1].result("other")));
}

TEST_CASE("logs: a run of other settings than those of today is left out") {
  const std::string path = cli::in_scratch("today.jsonl");
  LogFile file(path);
  file.add(log_of(7, {{"right", 1}}), {run_of(7)});
  CHECK(file.others({run_of(7), run_of(1)}) == 0);
  CHECK(file.others({run_of(1)}) == 1);
  CHECK(thrown<translator::InputError>([&] { papers::run_missing("today", {run_of(1)}, file); }) ==
        path + ": holds a run of other settings or seeds, or of an older program, which would be "
                   "lost: name another folder with --out, or remove the file");
  CHECK(papers::run_missing("today", {run_of(7)}, file));
  file.add(log_of(1, {{"right", 1}}), {run_of(1)});
  CHECK(LogFile(path).logs().size() == 1);
}

TEST_CASE("logs: a damaged file is named with its line, and with what to do") {
  const std::string run = R"({"event":"run","setting":{},"seed":1,"commands":["a"]})",
                    end = R"({"event":"end","seconds":1})";
  auto wrong = [&](const std::string& text) {
    cli::write_file("damaged.jsonl", text);
    return thrown<translator::InputError>([] { LogFile file(cli::in_scratch("damaged.jsonl")); });
  };
  CHECK(wrong(run + "\n{}\n" + end + "\n") == "(no error)");
  const std::string advice = "; without the file, all runs are done again";
  CHECK(wrong("{}\n").ends_with("damaged.jsonl:1: no run begins here" + advice));
  CHECK(wrong(run + "\n" + run + "\n").ends_with(":2: a run has no end" + advice));
  CHECK(wrong(run + "\n{}\n").ends_with(":2: the last run has no end" + advice));
  CHECK(wrong(run + "\n{\"eve").ends_with(":2: not a line of a log" + advice));
  CHECK(wrong("{\"event\":\"run\"}\n").ends_with(":1: not a line of a log" + advice));
  for (const char* odd : {R"("seed":-1)", R"("seed":1e30)", R"("seed":1,"setting":{"lag":1e30})",
                          R"("seed":1,"setting":{"lag":-1e30})"})
    CHECK(wrong(R"({"event":"run","setting":{},"commands":["a"],)" + std::string(odd) + "}\n" + end + "\n")
              .ends_with(":1: not a line of a log" + advice));
  CHECK(wrong(run + "\n{\"event\":\"test\",\"update\":1e30}\n" + end + "\n")
            .ends_with(":2: not a line of a log" + advice));
  CHECK(
      wrong(run + "\n{\"event\":\"end\",\"seconds\":\"x\"}\n").ends_with(":2: not a line of a log" + advice));
}

TEST_CASE("logs: a command that fails is named, with what it said, and its run is none of the log") {
  const Run fails{json::object(), 1, {{"gallery-feedforward", "--sing"}}, 1};
  LogFile file(cli::in_scratch("fails.jsonl"));
  CHECK(thrown<std::runtime_error>([&] { papers::run_missing("fails", {fails}, file); }) ==
        "failed: gallery-feedforward --sing\ngallery-feedforward: there is no option --sing");
  CHECK_FALSE(cli::exists("fails.jsonl"));
}

TEST_CASE("logs: a program that cannot be started leaves no scratch directory") {
  const scratch::Directory temporary;
  setenv("TMPDIR", temporary.path().c_str(), 1);
  // What stands where the programs do, and is none.
  const Run none{json::object(), 1, {{"libgallery.a"}}, 1};
  LogFile file(cli::in_scratch("none.jsonl"));
  CHECK(thrown<std::runtime_error>([&] { papers::run_missing("none", {none}, file); })
            .ends_with("libgallery.a: Permission denied"));
  unsetenv("TMPDIR");
  CHECK(std::filesystem::is_empty(temporary.path()));
}

TEST_CASE("of several evaluations each is had by its place, and its rows by the length of the source") {
  const json short_one = {{"source_words", "1 .. 5"}, {"bleu", 80.0}};
  const json last = {{"bleu", 70.0}, {"by_length", json::array({short_one})}};
  const std::vector<Log> logs = {log_of(1, last), {json::object(), 2}};
  CHECK(papers::nth_line(logs, 0).size() == 1);
  CHECK(papers::nth_line(logs, 0)[0].lines == std::vector<json>{logs[0].lines[0]});
  CHECK(papers::results(papers::nth_line(logs, 1), "bleu") == std::vector<double>{70});
  CHECK(papers::nth_line(logs, 2).empty());
  CHECK(papers::where(logs, {{"pool", "mean"}}).empty());  // which neither has
  const std::vector<double> rows = papers::results_at(logs, "1 .. 5", "bleu");
  CHECK(rows.at(0) == 80);
  CHECK(std::isnan(rows.at(1)));
  CHECK(std::isnan(papers::results_at(logs, "> 30", "bleu").at(0)));
  CHECK(std::isnan(papers::results_at(logs, "1 .. 5", "aer").at(0)));
}

TEST_CASE("pages: why orders do not hold is told where one does not") {
  papers::Page page;
  page.findings = {{true, "one."}, {true, "two."}};
  page.reasons = {"Because."};
  const papers::Experiment any{"any", "anything", [](bool, int) { return std::vector<Run>(); }, nullptr};
  CHECK(papers::markdown(any, page, {}).find("Because.") == std::string::npos);
  CHECK(papers::index_row(any, page).ends_with("| 2 of 2 |\n"));
  page.findings[1].holds = false;
  CHECK(papers::markdown(any, page, {}).find("two.\n\n## Why orders do not hold\n\n- Because.\n\n") !=
        std::string::npos);
  CHECK(papers::index_row(any, page).ends_with("| 1 of 2 |\n"));
  page.findings[0].clear = false;
  CHECK(papers::markdown(any, page, {}).find("- Holds by the means: one.\n") != std::string::npos);
  CHECK(papers::index_row(any, page).ends_with("| 1 of 2, 1 of them by the means |\n"));
}

TEST_CASE("pages: a table shows what stands in it, and the command is the one that makes the page") {
  papers::Page page;
  page.tables = {{"Of *all*:", {"a|b"}, {{"c_d*`[\\<"}}}};
  const papers::Experiment any{"any", "anything", [](bool, int) { return std::vector<Run>(); }, nullptr};
  const std::string text = papers::markdown(any, page, {{json::object(), 1, {"gallery-any --quick"}}});
  CHECK(text.find("Of *all*:\n\n| a&#124;b |\n| --- |\n| c\\_d\\*\\`\\[\\\\&lt; |\n") != std::string::npos);
  CHECK(text.find("\n    tools/experiments any --quick\n") != std::string::npos);
}

TEST_CASE("rising: an order holds where each mean is below the next, and NaN is below nothing") {
  const Finding clear = papers::rising({{"a", {1, 1.1}}, {"b", {2, 2.1}}, {"c", {5, 5.1}}});
  CHECK((clear.holds && clear.clear));
  CHECK(clear.text == "a (1.1 ± 0.1) < b (2.0 ± 0.1) < c (5.0 ± 0.1).");
  const Finding open = papers::rising({{"a", {1, 3}}, {"b", {2, 3}}});
  CHECK((open.holds && !open.clear));
  CHECK(open.text.ends_with("; the seeds do not tell apart: a and b."));
  const Finding wrong = papers::rising({{"a", {0.3}}, {"b", {0.2}}}, {100, 0});
  CHECK_FALSE(wrong.holds);
  CHECK(wrong.text == "a (30) < b (20); not so: a and b.");
  const Finding equal = papers::rising({{"a", {2, 3.5}}, {"b", {1, 3.5}}, {"c", {NAN}}});
  CHECK_FALSE(equal.holds);
  CHECK(equal.text.ends_with("; not so: b and c; not so, though the seeds do not tell them apart: a and b."));
  CHECK_FALSE(papers::rising({{"a", {1}}, {"b", {1}}}).holds);
  CHECK_FALSE(papers::rising({{"a", {NAN}}, {"b", {1}}}).holds);
  CHECK_FALSE(papers::rising({{"a", {1}}, {"b", {NAN}}}).holds);
  CHECK_FALSE(papers::rising({{"a", {}}, {"b", {1}}}).holds);
}
