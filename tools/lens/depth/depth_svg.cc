// The picture of `lens flow --depth`: a line for each kind of stack over its layers.

#include <fmt/core.h>

#include <cmath>

#include "flow/chart.h"
#include "depth.h"

namespace lens {
namespace {

constexpr double kPlotTop = 64, kPlotHeight = 300, kApartHeight = 170, kKeyRow = 20;

// A colour for where the norm stands; dashed without residuals.
const char* const kKinds =
    ".k-last { stroke: #08519c; } .k-first { stroke: #067a70; } .k-none { stroke: #b85000; }\n"
    ".k-last.band { fill: #08519c; } .k-first.band { fill: #067a70; } .k-none.band { fill: #b85000; }\n"
    ".cut { stroke-dasharray: 7 5; } polygon.band { stroke: none; fill-opacity: .1; }\n"
    "@media (prefers-color-scheme: dark) { .k-last { stroke: #7db8f7; } .k-first { stroke: #35c9ba; }\n"
    "  .k-none { stroke: #ff9a3d; }\n"
    "  .k-last.band { fill: #7db8f7; } .k-first.band { fill: #35c9ba; } .k-none.band { fill: #ff9a3d; } }\n";

std::string name_of(const DepthKind& kind) { return "k-" + kind.norm + (kind.residual ? "" : " cut"); }

std::string numbers_below(const ChartScale& s) {
  const double bottom = s.top + s.height;
  std::string out;
  for (size_t l = 0; l < s.count; l += l == 0 ? 3 : 4)
    out += fmt::format("<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                       s.x(l), bottom + 19, l + 1);
  return out +
         fmt::format("<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">layer</text>\n",
                     (kChartLeft + kChartWidth - kChartRight) / 2, bottom + 38);
}

std::string said(const std::string& text, double y) {
  return fmt::format("<text class=\"quiet\" x=\"18\" y=\"{:.1f}\">{}</text>\n", y, text);
}

}  // namespace

std::string depth_svg(const DepthStudy& study) {
  const auto shown = study.shown();
  const size_t N = static_cast<size_t>(study.sizes.layers);
  ChartScale s{.count = N, .top = kPlotTop, .height = kPlotHeight};
  ChartScale apart{.count = N, .top = kPlotTop + kPlotHeight + 82, .height = kApartHeight};
  std::vector<std::vector<double>> differ;
  for (const DepthResult* r : shown) {
    s.take(r->states.low);
    s.take(r->states.high);
    differ.emplace_back();
    for (double x : r->apart) differ.back().push_back(std::log10(x));
    apart.take(differ.back());
  }
  s.round();
  apart.round();
  double key = apart.top + kApartHeight + 70;
  std::string out = chart_start(key + kKeyRow * static_cast<double>(shown.size()) - 4, study.title(), kKinds);
  out += said("|dL/dx|, x what a layer reads, over that of the last layer; band: all seeds", 50) + s.grid() +
         numbers_below(s);
  out += said("How far the words still differ there: |x - mean| / |x|, mean over words", apart.top - 14) +
         apart.grid() + numbers_below(apart);
  for (size_t k = 0; k < shown.size(); ++k) {
    const DepthResult& r = *shown[k];
    const DepthLine& l = r.states;
    const std::string name = name_of(r.kind);
    out += line_and_band(s, l.median, l.low, l.high, name);
    out += line_and_band(apart, differ[k], differ[k], differ[k], name);
    out += fmt::format(
        "<polyline class=\"{0}\" points=\"18,{1:.1f} 58,{1:.1f}\"/><text x=\"66\" y=\"{2:.1f}\">{3}: layer 1 "
        "gets {4} layer {5}</text>\n",
        name, key - 5, key, r.kind.name(), as_fraction(l.median[0]), N);
    key += kKeyRow;
  }
  return out + "</svg>\n";
}

}  // namespace lens
