#include "chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <common/utf8.h>

namespace lens {
namespace {

const char* const kStyle =
    "text { font: 14px system-ui, sans-serif; fill: #18202b; } .quiet { fill: #566071; } .small { font-size: "
    "12px; }\n"
    ".title { font-size: 17px; font-weight: 600; } .back { fill: #ffffff; } .grid { stroke: #d5dae2; }\n"
    "polyline { fill: none; stroke-width: 3; } .with { stroke: #08519c; }\n"
    ".without { stroke: #b85000; stroke-dasharray: 9 5; } .band { stroke: none; fill-opacity: .15; }\n"
    ".with.band, text.with { fill: #08519c; stroke: none; } .without.band, text.without { fill: #b85000; "
    "stroke: none; }\n"
    ".value { fill: #5b3f9a; } .score { fill: #c0398b; } .rest { fill: #8d97a6; } .cell { fill: #08519c; }\n"
    "@media (prefers-color-scheme: dark) { .back { fill: #181d25; } text { fill: #e8ebf0; } .quiet { fill: "
    "#9aa5b5; }\n"
    "  .grid { stroke: #343c49; } .with { stroke: #7db8f7; } .without { stroke: #ff9a3d; } .cell { fill: "
    "#7db8f7; }\n"
    "  .with.band, text.with { fill: #7db8f7; stroke: none; } .without.band, text.without { fill: #ff9a3d; "
    "stroke: none; }\n"
    "  .value { fill: #a78bfa; } .score { fill: #f472b6; } .rest { fill: #6f7b8c; } }\n";

// The area between two lines.
std::string area(const std::string& name, const ChartPoints& above, ChartPoints below) {
  std::reverse(below.begin(), below.end());
  return fmt::format("<polygon class=\"{}\" points=\"{} {}\"/>", name, text_of(above), text_of(below));
}

}  // namespace

double ChartScale::y(double log10) const {
  const double shown = std::min(high, std::max(low, log10));  // low first: NaN stands at the bottom, as 0 does
  return top + height * (high - shown) / (high - low);
}

void ChartScale::take(const std::vector<double>& log10s) {
  for (double x : log10s) {
    low = std::min(low, std::isfinite(x) ? x : 0);
    high = std::max(high, std::isfinite(x) ? x : 0);
  }
}

void ChartScale::round() {
  low = std::floor(low);
  high = std::ceil(high + 1e-9);
}

std::string ChartScale::grid() const {
  std::string out;
  const int decades = static_cast<int>(high - low), every = decades > 8 ? (decades + 7) / 8 : 1;
  for (int d = static_cast<int>(high); d >= static_cast<int>(low); d -= every)
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">10<tspan dy=\"-6\" "
        "font-size=\"11\">{}</tspan></text>\n",
        kChartLeft, kChartWidth - kChartRight, y(d), y(d), kChartLeft - 8, y(d) + 5, d);
  return out;
}

std::string chart_start(double height, const std::string& title, const std::string& style) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "role=\"img\" aria-label=\"{2}\">\n<style>\n{3}{4}</style>\n<rect class=\"back\" width=\"{0}\" "
      "height=\"{1}\"/>\n<text class=\"title\" x=\"18\" y=\"28\">{2}</text>\n",
      kChartWidth, height, translator::utf8::markup(translator::utf8::fit(title, 74)), kStyle, style);
}

std::string text_of(const ChartPoints& points) {
  std::string out;
  for (auto [x, y] : points) out += fmt::format("{:.1f},{:.1f} ", x, y);
  if (!out.empty()) out.pop_back();
  return out;
}

ChartPoints points_of(const ChartScale& s, const std::vector<double>& line) {
  ChartPoints out;
  for (size_t j = 0; j < line.size(); ++j) out.emplace_back(s.x(j), s.y(line[j]));
  return out;
}

std::string line_and_band(const ChartScale& s, const std::vector<double>& median,
                          const std::vector<double>& low, const std::vector<double>& high,
                          const std::string& name) {
  return area(name + " band", points_of(s, high), points_of(s, low)) +
         fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", name, text_of(points_of(s, median)));
}

}  // namespace lens
