// What is drawn of given numbers: nothing of what is no number, and no text that acts as markup.

#include <papers/chart.h>

#include <cmath>
#include <string>

#include "../cli/program.h"
#include "../quick_doctest.h"

using papers::chart_svg;
using papers::Panel;
using papers::Series;

namespace {

Panel panel_of(const std::vector<std::vector<double>>& values) {
  return {.title = "title",
          .x_name = "x",
          .places = {"1", "2"},
          .series = {{"one", values}},
          .low = 0,
          .high = 10};
}

}  // namespace

TEST_CASE("chart: a line goes through the means, and the range of the seeds stands at each") {
  const std::string svg = chart_svg("name", {panel_of({{2, 4}, {5, 5}})});
  CHECK(cli::count(svg, "<circle") == 2);  // means; of a single series there is no legend
  CHECK(cli::count(svg, "class=\"range") == 1);
  // 0 to 10 over 190: the mean of 3 is as far above 5's as 2 makes, 38.
  const size_t line = svg.find("points=\"");
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  REQUIRE(std::sscanf(svg.c_str() + line, "points=\"%lf,%lf %lf,%lf\"", &x0, &y0, &x1, &y1) == 4);
  CHECK(std::abs(y0 - y1 - 38) < 0.11);
  CHECK(x0 < x1);
}

TEST_CASE("chart: what is no number is left out, and a place without values too") {
  const std::string svg = chart_svg("name", {panel_of({{NAN, 3, INFINITY}, {}})});
  CHECK(cli::count(svg, "<circle") == 1);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
  CHECK(cli::count(chart_svg("name", {panel_of({{NAN}, {}})}), "<circle") == 0);
}

TEST_CASE("chart: names are text, whatever is in them") {
  Panel panel = panel_of({{1}, {2}});
  panel.series.push_back(panel.series[0]);
  panel.title = panel.x_name = panel.places[0] = panel.series[0].name = panel.guide_name = "<script>\"&\x1b";
  const std::string svg = chart_svg("\"><script>", {panel});
  CHECK(svg.find("<script") == std::string::npos);
  CHECK(svg.find('\x1b') == std::string::npos);
  CHECK(cli::count(svg, "&lt;script&gt;&quot;&amp;\uFFFD") == 5);
}

TEST_CASE("chart: bars stand on the axis, and dark colours come along") {
  Panel panel = panel_of({{4}, {8}});
  panel.bars = true;
  const std::string svg = chart_svg("name", {panel});
  CHECK(cli::count(svg, "<rect class=\"f0\"") == 2);
  CHECK(svg.find("height=\"76.0\"") != std::string::npos);   // 4 / 10 of 190
  CHECK(svg.find("height=\"152.0\"") != std::string::npos);  // 8 / 10
  CHECK(cli::count(svg, "class=\"guide\"") == 0);
  panel.low = -22;
  panel.guide = -5;
  CHECK(cli::count(chart_svg("name", {panel}), "class=\"guide\"") == 1);
  panel.guide_name = "chance";
  CHECK(cli::count(chart_svg("name", {panel}), "class=\"guide\"") == 2);
  CHECK(svg.find("prefers-color-scheme: dark") != std::string::npos);
}

TEST_CASE("chart: several series are named, as many in a line as there is room for; a bar of 0 is seen") {
  Panel panel = panel_of({{0}, {8}});
  for (const char* name : {"two", "a name of twenty letters", "another of twenty six"})
    panel.series.push_back({name, {{1}, {2}}});
  auto names = [&] {
    const std::string svg = chart_svg("name", {panel});
    std::vector<std::pair<double, double>> out;  // x and y of each
    for (const Series& series : panel.series) {
      const size_t at = svg.rfind("<text", svg.find(">" + series.name + "<"));
      double x = 0, y = 0;
      REQUIRE(std::sscanf(svg.c_str() + at, "<text class=\"\" x=\"%lf\" y=\"%lf\"", &x, &y) == 2);
      out.emplace_back(x, y);
    }
    return out;
  };
  const auto at = names();
  CHECK(at[0].second == at[1].second);
  CHECK(at[1].first > at[0].first + 50);  // "one", and the sign of the next
  CHECK(at[2].second == at[1].second);
  CHECK(at[3].second > at[2].second);
  CHECK(at[3].first == at[0].first);
  panel.bars = true;
  CHECK(names()[0].first < at[0].first);  // a square in place of a line with its mark
  CHECK(chart_svg("name", {panel}).find("height=\"1.5\"") != std::string::npos);
}

TEST_CASE("chart: names under the axis get smaller where they would touch, and no name takes no room") {
  Panel panel = panel_of({{1}, {2}});
  CHECK(chart_svg("name", {panel}).find("quiet small") == std::string::npos);
  panel.places = {std::string(40, 'a'), std::string(20, 'b')};
  CHECK(cli::count(chart_svg("name", {panel}), "quiet small") == 2);
  auto height = [&] {
    const std::string svg = chart_svg("name", {panel});
    return std::stod(svg.substr(svg.find("height=\"") + 8));
  };
  const double named = height();
  panel.x_name = "";
  CHECK(height() == named - 20);
}
