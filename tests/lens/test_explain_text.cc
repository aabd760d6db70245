// What `lens explain --text` says.

#include <cmath>
#include <regex>
#include <sstream>

#include "../about.h"
#include "../quick_doctest.h"
#include "../show_json.h"
#include "explain/text_parts.h"
#include "sentence/sentence.h"
#include "subjects.h"

TEST_CASE("uniform attention has no gradient of scores, and the text claims none") {
  auto [subject, d, trace] = lens::test::Traced({.attention = "uniform"});
  const std::string text = lens::explain_text(subject, d, trace, {.width = 100});
  CHECK(text.find("\nNo score pull: nothing that is learned leads to the scores, and no gradient\n"
                  "arrives there.\n") != std::string::npos);
  CHECK(text.find("Score pull, ") == std::string::npos);
  CHECK(text.find("sum of dL/de_j") == std::string::npos);
  CHECK(text.find("       none\n") != std::string::npos);
}

TEST_CASE("a station's line counts what the page counts, of annotations each path, too") {
  lens::Subject subject = lens::test::subject();
  lens::Dissection d = subject.dissect();
  lens::SentenceTrace trace = lens::trace_sentence(d, 1);
  // One path's check is off by more than all others of h.
  for (lens::Compared& c : trace.checks)
    if (c.step == 1 && c.station == "h, score path") c.error = 0.25;
  const std::string text = lens::explain_text(subject, d, trace, {.width = 100});
  const lens::json stations = lens::to_json(subject, d, trace, {})["steps"][1]["stations"];
  CHECK(stations["h"]["checks"]["worst"] == 0.25);
  for (const auto& [name, station] : stations.items()) {
    CAPTURE(name);
    CHECK(text.find("\n" + name + "  " + station["title"].get<std::string>()) != std::string::npos);
    const size_t begin = text.find("\n" + name + " ", text.find("differences  "));
    REQUIRE(begin != std::string::npos);
    const std::string line = text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
    // The name, then the count; the error stands last.
    std::smatch found;
    REQUIRE(std::regex_search(line, found, std::regex("^\\S+ +(\\d+) .* (\\S+)$")));
    CHECK(std::stoll(found[1]) == station["checks"]["count"].get<int64_t>());
    CHECK(std::stod(found[2]) == about(station["checks"]["worst"].get<double>(), 0.1));
  }
}

TEST_CASE("the text's own numbers, put into the text's formula, give its gradients") {
  struct Case {
    lens::test::Small model;
    std::string formula;
  };
  for (const Case& c : {
           Case{{}, "dL/de_j = alpha_j g.(h_j - c), g = dL/dc.\n"},
           Case{{.temperature = 0.5}, "dL/de_j = alpha_j g.(h_j - c) / 0.5, g = dL/dc.\n"},
           // So sharp that some weights are tiny.
           Case{{.temperature = 0.02}, "dL/de_j = alpha_j g.(h_j - c) / 0.02, g = dL/dc.\n"},
           Case{{.attention = "multihead", .temperature = 2},
                "dL/de_j = alpha_j g.(v_j - mix) / 2, g = dL/dc,\nv_j = W_o W_v h_j, "
                "mix = sum_j alpha_j v_j, of each head.\n"},
       }) {
    CAPTURE(c.formula);
    lens::Subject subject = lens::test::subject(c.model);
    lens::Dissection d = subject.dissect();
    const std::string text = lens::explain_text(subject, d, lens::trace_sentence(d), {.width = 100});
    CHECK(text.find(c.formula) != std::string::npos);
    int rows = 0;
    std::istringstream lines(text.substr(text.find(c.formula)));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string name;
      double score = 0, weight = 0, gain = 0, better = 0, gradient = 0;
      if (!(words >> name >> score >> weight >> gain >> better >> gradient) || words >> name) continue;
      ++rows;
      CAPTURE(line);
      // As far as a weight has digits: three where it is small, else four decimals.
      const double digits = weight < 1e-3 ? 5e-3 : 5e-5 / weight;
      CHECK(weight * better / c.model.temperature == about(gradient, 2e-3 + digits));
    }
    CHECK(rows == 5 * (c.model.attention == "multihead" ? 2 : 1));
    const bool said = text.find(", divided by the temperature ") != std::string::npos;
    CHECK(said == (c.model.temperature != 1));
  }
}

TEST_CASE("a long word keeps the table's columns, and a space alone has a name") {
  lens::Subject subject = lens::test::subject();
  subject.target.words[0] = std::string(40, 'x');
  subject.target.words[1] = "";
  std::istringstream lines(lens::said_words(subject, {{4, 4, 0.5, 0.25}, {4, 5, 0.5, 0.25}}));
  std::string head, first, second;
  std::getline(lines, head), std::getline(lines, first), std::getline(lines, second);
  CHECK(first.find("0.5000") + 6 == head.find(" p ") + 2 + std::string("…").size() - 1);
  CHECK(second.find("0.5000") + 6 == head.find(" p ") + 2 + std::string("▁").size() - 1);
  CHECK(second.starts_with("▁ (space)"));
}

TEST_CASE("small weights keep their digits") {
  CHECK(lens::weight_text(0.25) == "0.2500");
  CHECK(lens::weight_text(0.001) == "0.0010");
  CHECK(lens::weight_text(0.000231) == "2.31e-04");
  CHECK(lens::weight_text(0) == "0.0000");
}

TEST_CASE("of words that are alike it is told where they stand, of others not") {
  lens::Subject subject = lens::test::subject();
  const std::vector<std::string> names = {"<s>", "the", "cat", "the"};
  CHECK(lens::told(names, 2, subject) == "\"cat\"");
  CHECK(lens::told(names, 3, subject) == "\"the\" (word 4)");
  CHECK(lens::told(names, 3, subject, 0) == "\"the\" (word 3)");
}

TEST_CASE("the worst of some checks is what is no number, else the largest") {
  lens::SentenceTrace trace;
  CHECK(lens::checks_of(trace, 0, "h").worst == nullptr);
  for (double error : {0.1, 0.3, 0.2}) trace.checks.push_back({.station = "h, value path", .error = error});
  trace.checks.push_back({.station = "h", .error = 0.1});
  trace.checks.push_back({.station = "hidden", .error = 1});
  trace.checks.push_back({.station = "h", .step = 1, .error = 1});
  CHECK(lens::checks_of(trace, 0, "h").count == 4);
  CHECK(lens::checks_of(trace, 0, "h").worst->error == 0.3);
  trace.checks[0].error = NAN;
  CHECK(std::isnan(lens::checks_of(trace, 0, "h").worst->error));
}
