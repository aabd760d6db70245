// The programs of the gallery: their command lines, and what they say to people and to programs.

#include <cmath>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "../gallery/run_gallery.h"
#include "../quick_doctest.h"

#include <common/json_text.h>

namespace {

// Their names, with blanks between.
std::vector<std::string> programs() {
  std::istringstream names(GALLERY_PROGRAMS);
  return {std::istream_iterator<std::string>(names), {}};
}

}  // namespace

TEST_CASE("gallery: --help tells all, and what makes no sense ends with status 2") {
  for (const std::string& name : programs()) {
    CAPTURE(name);
    const cli::Result help = cli::run_gallery(name, {"--help"});
    CHECK(help.code == 0);
    for (const char* option : {"--seed", "--quick", "--json"})
      CHECK(help.out.find(option) != std::string::npos);
    const cli::Result unknown = cli::run_gallery(name, {"--quik"});
    CHECK(unknown.code == 2);
    CHECK(unknown.says("gallery-" + name + ": there is no option --quik; hint: --quick?"));
    CHECK(cli::run_gallery(name, {"--seed", "-1"}).code == 2);
    const cli::Result word = cli::run_gallery(name, {"word"});
    CHECK(word.code == 2);
    CHECK(word.says("\"word\" was not expected"));
  }
}

TEST_CASE("gallery: under --json every line is JSON, the last one the result, and a seed says it again") {
  const cli::Arguments shortest = {"--quick", "--json", "--length", "20", "--epochs", "2", "--pool", "mean"};
  const cli::Result first = cli::run_gallery("feedforward", shortest),
                    second = cli::run_gallery("feedforward", shortest);
  CHECK(first.code == 0);
  CHECK(first.err == "");
  CHECK(first.out == second.out);
  nlohmann::ordered_json last;
  for (const std::string& line : cli::lines_of(first.out)) last = json_text::parse(line);
  CHECK(last.at("event") == "result");
  CHECK(last.at("parameters") == 10501);
  CHECK(last.at("epochs") == 2);
}

TEST_CASE("gallery-feedforward: people see it learn, and then the weights at the marks") {
  const cli::Result found = cli::run_gallery("feedforward", {"--quick", "--length", "20", "--epochs", "2"});
  CHECK(found.code == 0);
  CHECK(found.out.find("10602 parameters") != std::string::npos);
  CHECK(cli::count(found.out, "times the mean") == 4);
  CHECK(found.out.find("█") != std::string::npos);
}

TEST_CASE("gallery-feedforward: the shortest sequences have both marks, too") {
  // Of one in nine both would be at one place.
  for (int seed = 20; seed < 30; ++seed) {
    const cli::Result found = cli::run_gallery(
        "feedforward", {"--quick", "--length", "10", "--epochs", "1", "--seed", std::to_string(seed)});
    CHECK(cli::count(found.out, "mark  1") == 2);
    CHECK(cli::count(found.out, "mark -1") == 2);
  }
}

TEST_CASE("gallery-recall: a GRU recalls what was read four words ago, and its gradient is drawn") {
  const cli::Result said = cli::run_gallery("recall", {"--quick", "--json", "--cell", "gru", "--lag", "4"});
  CHECK(said.code == 0);
  nlohmann::ordered_json last;
  for (const std::string& line : cli::lines_of(said.out)) last = json_text::parse(line);
  CHECK(last.at("recalled") == 1.0);
  CHECK(last.at("reach_before") > 0.0);
  CHECK(last.at("reach_before") < 1.0);
  const cli::Result shown = cli::run_gallery("recall", {"--quick", "--cell", "gru", "--lag", "4"});
  CHECK(shown.out.find("before training") != std::string::npos);
  CHECK(cli::count(shown.out, "first / last = ") == 2);
}

TEST_CASE("gallery-feedforward: sequences end before their batch does, at lengths of their own") {
  const cli::Result found = cli::run_gallery(
      "feedforward", {"--quick", "--length", "20", "--epochs", "1", "--pool", "mean"});
  long last = 0;
  double weight = 0, times_mean = 0;
  const std::string line = found.out.substr(found.out.rfind("step"));
  REQUIRE(std::sscanf(line.c_str(), "step %ld mark -1 value %*f weight %lf, %lf times the mean", &last, &weight,
                      &times_mean) == 3);
  CHECK(times_mean == 1);
  CHECK(std::lround(1 / weight) == 22);  // steps, of which 20 or 21 are the sequence's
  CHECK(last < 21);
}
