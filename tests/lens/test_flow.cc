// What `lens flow` computes: how much gradient reaches each source word.

#include <doctest/doctest.h>

#include <cmath>

#include "flow.h"
#include "schema.h"
#include "subjects.h"

using namespace lens;

TEST_CASE("untrained, without attention the first of 30 words gets next to nothing, with it its share") {
  FlowResult r = flow_untrained({"gru", false, 30});
  CHECK(r.without.median[0] < -4);
  CHECK(r.with.median[0] > -2);
  CHECK(r.without.high[0] < r.with.low[0]);  // of every seed
  CHECK(r.without.median[29] == 0);
  CHECK(r.with.median[29] == 0);
  CHECK(r.worst_error < 1e-6);
  for (size_t j = 0; j < 30; ++j)
    CHECK(std::abs(r.with.value[j] + r.with.score[j] + r.with.recurrent[j] - 1) < 1e-12);
  CHECK(r.with.recurrent[29] == 0);
  CHECK(r.without.value.empty());
}

TEST_CASE("it gets worse with the length, and the plain RNN is worst") {
  double before = 0;
  for (int64_t length : {5, 20, 60}) {
    FlowResult r = flow_untrained({"gru", false, length}, 3);
    CHECK(r.without.median[0] < before);
    before = r.without.median[0];
    CHECK(r.with.median[0] > -2);
    CHECK(r.worst_error < 1e-6);
  }
  CHECK(flow_untrained({"rnn", false, 30}, 4).without.median[0] <
        flow_untrained({"lstm", false, 30}, 4).without.median[0]);
}

TEST_CASE("reading both ways makes a V without attention") {
  FlowResult r = flow_untrained({"gru", true, 30}, 4);
  CHECK(r.without.median[0] > -1);
  CHECK(r.without.median[15] < -1);
}

TEST_CASE("a model's own short cut can be cut") {
  Subject s = test::subject({.bidirectional = false});
  std::vector<int32_t> source(20, 5), target = {5, 6, gradus::nn::kEos};
  Flow with = flow_with(s.network(), source, target), cut = flow_cut(s.network(), source, target);
  REQUIRE(with.full.size() == 20);
  CHECK(cut.value.empty());
  CHECK(cut.full[0] / cut.full[19] < with.full[0] / with.full[19]);
  FlowResult r = flow_trained(s.network(), nullptr, 12, 2);
  CHECK(r.setting.length == 12);
  CHECK(r.worst_error < 1e-6);
}

TEST_CASE("text, picture, trace and page of a flow") {
  FlowResult r = flow_untrained({"gru", false, 10}, 2);
  std::string text = flow_text(r, "A title");
  CHECK(text.starts_with("A title\n"));
  CHECK(text.find("word 1 gets " + as_fraction(r.without.median[0]) + " word 10") != std::string::npos);
  std::string svg = flow_svg(r, "A title");
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("nan") == std::string::npos);
  json trace = flow_json({r}, "A title", false, 2, 0);
  auto found = problems(trace, trace_schema());
  CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found[0]));
  trace["results"][0]["with"]["median"][0] = nullptr;
  CHECK(!problems(trace, trace_schema()).empty());
  CHECK(as_fraction(-5.5) == "1/300000 of");
  CHECK(as_fraction(-1) == "1/10 of");
  CHECK(as_fraction(0.08) == "1.2 times as much as");
  CHECK(as_fraction(-12.4) == "1/(10^12) of");
  CHECK(as_fraction(-INFINITY) == "nothing of");
}
