// What `lens explain --text` says.

#include <cmath>
#include <regex>

#include "../about.h"
#include "../quick_doctest.h"
#include "../show_json.h"
#include "sentence/sentence.h"
#include "subjects.h"

TEST_CASE("uniform attention has no gradient of scores, and the text claims none") {
  lens::Subject subject = lens::test::subject({.attention = "uniform"});
  lens::Dissection d = subject.dissect();
  lens::SentenceTrace trace = lens::trace_sentence(d);
  const std::string text = lens::explain_text(subject, d, trace, {.width = 100});
  CHECK(text.find("\nNo score pull: nothing that is learned leads to the scores, and no gradient arrives "
                  "there.\n") != std::string::npos);
  CHECK(text.find("Score pull, ") == std::string::npos);
  CHECK(text.find("sum of dL/de_j") == std::string::npos);
  CHECK(text.find("       none |") != std::string::npos);
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
    const size_t begin = text.find("\n" + name + "  " + station["title"].get<std::string>());
    REQUIRE(begin != std::string::npos);
    const std::string line = text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
    // Shape, two lengths, then the count; the error stands last.
    std::smatch found;
    REQUIRE(std::regex_search(line, found, std::regex("\\] +\\S+ +\\S+ +(\\d+) .* (\\S+)$")));
    CHECK(std::stoll(found[1]) == station["checks"]["count"].get<int64_t>());
    CHECK(std::stod(found[2]) == about(station["checks"]["worst"].get<double>(), 0.1));
  }
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
