// The picture of `lens flow`: the two lines, the ways under the one with attention, and the two maps.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include <common/utf8.h>

#include "chart.h"
#include "flow.h"

namespace lens {
namespace {

using translator::utf8::display_width, translator::utf8::fit, translator::utf8::markup;

constexpr double kTop = 92, kChart = 320, kRibbon = 26, kCell = 17;
constexpr int kLongest = 12;  // of a source word, columns

std::string line(const ChartScale& s, const FlowLine& l, const std::string& name) {
  return line_and_band(s, l.median, l.low, l.high, name);
}

// What hangs under the line at each word, of one height everywhere: divided by the ways the gradient came.
std::string bars(const ChartScale& s, const FlowLine& l) {
  std::string out;
  double width = std::min(s.column() - 1, 44.0);
  for (size_t j = 0; j < l.median.size(); ++j) {
    double y = s.y(l.median[j]) + 2;
    for (auto [name, shares] :
         {std::pair("value", &l.value), std::pair("score", &l.score), std::pair("rest", &l.recurrent)}) {
      if (shares->empty()) continue;  // a Transformer has no recurrent path
      const double share = (*shares)[j], height = std::isfinite(share) ? kRibbon * share : 0;
      out += fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>",
                         name, s.x(j) - width / 2, y, width, height);
      y += height;
    }
    out += "\n";
  }
  return out;
}

// Some word is too wide for its column.
bool slants(const FlowResult& r, const ChartScale& s) {
  return std::any_of(r.source.begin(), r.source.end(),
                     [&](const std::string& word) { return 8 * display_width(word) > s.column(); });
}

std::string axis(const FlowResult& r, const ChartScale& s, double y) {
  std::string out;
  const bool slanted = slants(r, s);
  // Slanted lines of text have room from a column of 21 on.
  const size_t step = r.source.empty() ? std::max<size_t>(1, s.count / 6) : (s.count + 31) / 32;
  for (size_t j = 0; j < s.count; j += step) {
    std::string word = r.source.empty() ? std::to_string(j + 1) : markup(fit(r.source[j], kLongest));
    std::string turned =
        slanted ? fmt::format(" transform=\"rotate(-35 {:.1f} {:.1f})\"", s.x(j) + 4, y - 4) : "";
    out += fmt::format("<text class=\"quiet{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n",
                       slanted ? " small" : "", s.x(j) + (slanted ? 4 : 0), y, slanted ? "end" : "middle",
                       turned, word);
  }
  return out;
}

// Rows are target words, columns source words; deeper is larger, on one log scale for both maps.
std::string maps(const FlowResult& r, const std::string& other, const std::string& attends, const char* unit,
                 double top) {
  auto [low, high] = range_of_maps(r);
  size_t T = r.with.map.size(), S = r.with.median.size();
  double gap = 28, width = (kChartWidth - kChartLeft - kChartRight - gap) / 2,
         cell = width / static_cast<double>(S);
  std::string out;
  double left = kChartLeft;
  for (auto [name, text, line] :
       {std::tuple("without", other, &r.without), std::tuple("with", attends, &r.with)}) {
    out += fmt::format("<text class=\"{} small\" x=\"{:.1f}\" y=\"{:.1f}\">{}: |dL_t/dh_j|</text>\n", name,
                       left, top - 8, text);
    for (size_t t = 0; t < T; ++t) {
      double y = top + kCell * static_cast<double>(t);
      if (line == &r.without)
        out +=
            fmt::format("<text class=\"quiet small\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
                        left - 6, y + 12,
                        r.target.empty() ? std::to_string(t + 1)
                                         : markup(fit(r.target[t], 7)));
      for (size_t j = 0; j < S; ++j) {
        double x = line->map[t][j], part = high > low && std::isfinite(x) ? (x - low) / (high - low) : 0;
        out += fmt::format(
            "<rect class=\"cell\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" "
            "fill-opacity=\"{:.2f}\"/>",
            left + cell * static_cast<double>(j), y, cell - 0.6, kCell - 1, 0.04 + 0.96 * part);
      }
      out += "\n";
    }
    left += width + gap;
  }
  out += fmt::format(
      "<text class=\"quiet small\" x=\"{0:.1f}\" y=\"{1:.1f}\">a row a target {4}, a column a source {4}; pale "
      "10^{2:.1f}, deep 10^{3:.1f}, one log scale</text>\n",
      kChartLeft, top + kCell * static_cast<double>(T) + 16, low, high, unit);
  return out;
}

}  // namespace

std::string flow_svg(const FlowResult& r, const FlowTitles& titles) {
  // What hangs under the lines has room below the lowest.
  ChartScale s{.count = r.with.median.size(), .top = kTop, .height = kChart - kRibbon - 4};
  for (const FlowLine* l : {&r.with, &r.without}) {
    s.take(l->low);
    s.take(l->high);
  }
  s.round();
  const double bottom = kTop + kChart;
  const double legend = bottom + (r.source.empty() ? 60 : slants(r, s) ? 92 : 50), map = legend + 42;
  double height = map + kCell * static_cast<double>(r.with.map.size()) + 28;
  std::string out = chart_start(height, titles.title) + s.grid();
  out += axis(r, s, bottom + 19);
  if (r.source.empty())
    out += fmt::format(
        "<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">source {}</text>\n",
        (kChartLeft + kChartWidth - kChartRight) / 2, bottom + 38, unit_of(r, titles));
  out += bars(s, r.with) + line(s, r.without, "without") + line(s, r.with, "with");
  std::string other = titles.transformer                      ? "at the words"
                      : r.weights == "fresh" || titles.versus ? "without"
                                                              : "short cut stopped";
  const std::string attends = titles.transformer ? "at the encoder's states" : "with";
  double key = 51;
  for (auto [name, text, l] :
       {std::tuple("with", attends, &r.with), std::tuple("without", other, &r.without)}) {
    out += fmt::format(
        "<polyline class=\"{0}\" points=\"18,{1:.1f} 52,{1:.1f}\"/><text class=\"{0}\" x=\"59\" "
        "y=\"{2:.1f}\">{3}: |dL/dh| at {6} 1 is {4} {6} {5}'s</text>\n",
        name, key, key + 5, text, as_fraction(l->median[0]), s.count, unit_of(r, titles));
    key += 19;
  }
  double x = kChartLeft;
  for (auto [name, words] : {std::pair("value", "value path: through the mixture"),
                             std::pair("score", "score path: through the weights"),
                             std::pair("rest", "recurrent path: from state to state")}) {
    if (titles.transformer && std::string(name) == "rest") continue;
    out += fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"12\"/><text class=\"quiet small\" "
        "x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        name, x, legend - 11, x + 19, legend, words);
    x += 226;
  }
  return out + maps(r, other, attends, unit_of(r, titles), map) + "</svg>\n";
}

}  // namespace lens
