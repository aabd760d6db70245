// What a race of attentions says of given runs.

#include <translator/commands/comparison.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include <common/json_text.h>
#include <common/utf8.h>

#include "../quick_doctest.h"

using namespace translator;

namespace {

RaceRun race_run(const std::string& attention, double loss, double bleu) {
  return {.attention = attention,
          .loss = loss,
          .bleu = bleu,
          .aer = {},
          .entropy = {},
          .map = {.source = {"<he>", "sings"}, .target = {"il", "chante"}, .weights = {{1, 0}, {0, 1}}}};
}

std::vector<RaceRow> rows() {
  return race_rows({race_run("dot", 2, 20), race_run("general", 1, 30), race_run("hard", 1.1, 30.5),
                    race_run("dot", 2.1, 21), race_run("general", 1.1, 32), race_run("hard", 1.2, 30.5)});
}

int widest(const std::string& text) {
  int width = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) width = std::max(width, utf8::display_width(line));
  return width;
}

}  // namespace

TEST_CASE("a race: the best has the least loss and the most BLEU; who is behind it, and who may not be") {
  const std::string general =
      "general is best; behind it beyond the spread of the seeds: dot; not told apart from it: hard";
  CHECK(race_findings(rows()) == std::vector<std::string>{"loss: " + general, "exact match: the same for all",
                                                          "BLEU: " + general});
  CHECK(race_findings(race_rows({race_run("dot", 2, 20), race_run("hard", 1, 30)})).empty());
}

TEST_CASE("a race: a screen that does not hold all columns gets them in parts, each with the attentions") {
  const std::string whole = race_table(rows(), 200), parts = race_table(rows(), 60);
  CHECK(widest(whole) > 60);
  CHECK(widest(parts) <= 60);
  auto words = [](const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> out;
    for (std::string word; in >> word;) out.push_back(word);
    std::sort(out.begin(), out.end());
    return out;
  };
  std::vector<std::string> told = words(parts);
  for (const char* name : {"attention", "dot", "general", "hard"}) {  // they stand in front of each part
    const auto at = std::find(told.begin(), told.end(), name), end = std::upper_bound(at, told.end(), name);
    CHECK(end - at > 1);
    told.erase(at + 1, end);
  }
  CHECK(told == words(whole));
  CHECK(widest(race_table(rows(), 1)) > 1);  // a column of its own each
}

TEST_CASE("a race: a run comes back as it was written, and is none where a weight is missing") {
  const std::string text = to_json(race_run("dot", 2, 20), "size 8");
  const std::optional<RaceRun> again = race_run_from_json(text, "size 8");
  REQUIRE(again);
  CHECK(to_json(*again, "size 8") == text);
  CHECK_FALSE(race_run_from_json(text, "size 9"));
  for (const char* place : {"/weights", "/weights/1"}) {
    auto damaged = json_text::parse(text);
    const nlohmann::ordered_json::json_pointer at{std::string(place)};
    damaged[at].erase(1);
    CHECK_FALSE(race_run_from_json(json_text::dump(damaged), "size 8"));
  }
}

TEST_CASE("a race: maps stand beside each other where there is room, and words are text") {
  const std::vector<RaceRow> two(2, rows()[0]), five(5, rows()[0]);
  const std::string beside = race_maps(two, 200);
  CHECK(race_maps(two, widest(beside)) == beside);
  CHECK(widest(race_maps(two, widest(beside) - 1)) < widest(beside));
  const std::string svg = race_svg(five);
  CHECK(svg.find("<he>") == std::string::npos);
  CHECK(svg.find(">&lt;he&gt;</text>") != std::string::npos);
  double x = 0, y = 0;  // of the fifth, below the first
  REQUIRE(std::sscanf(svg.c_str() + svg.rfind("<g "), "<g transform=\"translate(%lf %lf)", &x, &y) == 2);
  CHECK(x == 24);
  CHECK(y > 24 + 2 * 18 + 24);
}
