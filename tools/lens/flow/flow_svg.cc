// The picture of `lens flow`: the two lines, the ways under the one with attention, and the two maps.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include <common/utf8.h>

#include "flow.h"

namespace lens {
namespace {

constexpr double kLeft = 62, kRight = 24, kTop = 92, kWidth = 760, kChart = 320, kRibbon = 26, kCell = 17;

const char* const kStyle =
    "text { font: 14px system-ui, sans-serif; fill: #18202b; } .quiet { fill: #566071; } .small { font-size: "
    "12px; }\n"
    ".title { font-size: 17px; font-weight: 600; } .back { fill: #ffffff; } .grid { stroke: #d5dae2; }\n"
    "polyline { fill: none; stroke-width: 3; } .with { stroke: #08519c; }\n"
    ".without { stroke: #d2620a; stroke-dasharray: 9 5; } .band { stroke: none; fill-opacity: .15; }\n"
    ".with.band, text.with { fill: #08519c; stroke: none; } .without.band, text.without { fill: #d2620a; "
    "stroke: none; }\n"
    ".value { fill: #5b3f9a; } .score { fill: #c0398b; } .rest { fill: #8d97a6; } .cell { fill: #08519c; }\n"
    "@media (prefers-color-scheme: dark) { .back { fill: #181d25; } text { fill: #e8ebf0; } .quiet { fill: "
    "#9aa5b5; }\n"
    "  .grid { stroke: #343c49; } .with { stroke: #7db8f7; } .without { stroke: #ff9a3d; } .cell { fill: "
    "#7db8f7; }\n"
    "  .with.band, text.with { fill: #7db8f7; stroke: none; } .without.band, text.without { fill: #ff9a3d; "
    "stroke: none; }\n"
    "  .value { fill: #a78bfa; } .score { fill: #f472b6; } .rest { fill: #6f7b8c; } }\n";

std::string power(double x, double y, double exponent) {
  return fmt::format(
      "<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">10<tspan dy=\"-6\" "
      "font-size=\"11\">{}</tspan></text>\n",
      x, y, exponent);
}

struct Scale {
  double low, high;
  size_t words;
  double column() const { return (kWidth - kLeft - kRight) / static_cast<double>(words); }
  double x(size_t j) const { return kLeft + column() * (static_cast<double>(j) + 0.5); }
  // What hangs under the lines has room below the lowest.
  double y(double log10) const {
    return kTop + (kChart - kRibbon - 4) * (high - std::max(log10, low)) / (high - low);
  }
};

using Points = std::vector<std::pair<double, double>>;

std::string text_of(const Points& points) {
  std::string out;
  for (auto [x, y] : points) out += fmt::format("{:.1f},{:.1f} ", x, y);
  if (!out.empty()) out.pop_back();
  return out;
}

// The area between two lines.
std::string area(const std::string& name, const Points& above, Points below) {
  std::reverse(below.begin(), below.end());
  return fmt::format("<polygon class=\"{}\" points=\"{} {}\"/>", name, text_of(above), text_of(below));
}

Points points_of(const Scale& s, const std::vector<double>& line) {
  Points out;
  for (size_t j = 0; j < line.size(); ++j) out.emplace_back(s.x(j), s.y(line[j]));
  return out;
}

std::string line(const Scale& s, const FlowLine& l, const std::string& name) {
  return area(name + " band", points_of(s, l.high), points_of(s, l.low)) +
         fmt::format("<polyline class=\"{}\" points=\"{}\"/>\n", name, text_of(points_of(s, l.median)));
}

// What hangs under the line at each word, of one height everywhere: divided by the ways the gradient came.
std::string bars(const Scale& s, const FlowLine& l) {
  std::string out;
  double width = std::min(s.column() - 1, 44.0);
  for (size_t j = 0; j < l.median.size(); ++j) {
    double y = s.y(l.median[j]) + 2;
    for (auto [name, shares] :
         {std::pair("value", &l.value), std::pair("score", &l.score), std::pair("rest", &l.recurrent)}) {
      double height = kRibbon * (*shares)[j];
      out += fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>",
                         name, s.x(j) - width / 2, y, width, height);
      y += height;
    }
    out += "\n";
  }
  return out;
}

std::string axis(const FlowResult& r, const Scale& s, double y) {
  std::string out;
  bool slanted = std::any_of(r.source.begin(), r.source.end(), [&](const std::string& word) {
    return 8 * static_cast<double>(word.size()) > s.column();
  });
  size_t step = r.source.empty() ? std::max<size_t>(1, s.words / 6) : std::max<size_t>(1, s.words / 24);
  for (size_t j = 0; j < s.words; j += step) {
    std::string word = r.source.empty() ? std::to_string(j + 1) : translator::utf8::markup(r.source[j]);
    std::string turned =
        slanted ? fmt::format(" transform=\"rotate(-35 {:.1f} {:.1f})\"", s.x(j) + 4, y - 4) : "";
    out += fmt::format("<text class=\"quiet{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n",
                       slanted ? " small" : "", s.x(j) + (slanted ? 4 : 0), y, slanted ? "end" : "middle",
                       turned, word);
  }
  return out;
}

// Rows are target words, columns source words; deeper is larger, on one log scale for both maps.
std::string maps(const FlowResult& r, const std::string& other, const char* unit, double top) {
  auto [low, high] = range_of_maps(r);
  size_t T = r.with.map.size(), S = r.with.median.size();
  double gap = 28, width = (kWidth - kLeft - kRight - gap) / 2, cell = width / static_cast<double>(S);
  std::string out;
  double left = kLeft;
  for (auto [name, text, line] :
       {std::tuple("without", other, &r.without), std::tuple("with", std::string("with"), &r.with)}) {
    out += fmt::format("<text class=\"{} small\" x=\"{:.1f}\" y=\"{:.1f}\">{}: |dL_t/dh_j|</text>\n", name,
                       left, top - 8, text);
    for (size_t t = 0; t < T; ++t) {
      double y = top + kCell * static_cast<double>(t);
      if (line == &r.without)
        out +=
            fmt::format("<text class=\"quiet small\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
                        left - 6, y + 12,
                        r.target.empty() ? std::to_string(t + 1)
                                         : translator::utf8::markup(translator::utf8::fit(r.target[t], 8)));
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
      kLeft, top + kCell * static_cast<double>(T) + 16, low, high, unit);
  return out;
}

}  // namespace

std::string flow_svg(const FlowResult& r, const FlowTitles& titles) {
  Scale s{0, 0, r.with.median.size()};
  for (const FlowLine* l : {&r.with, &r.without}) {
    for (double x : l->low) s.low = std::min(s.low, std::isfinite(x) ? x : 0);
    for (double x : l->high) s.high = std::max(s.high, std::isfinite(x) ? x : 0);
  }
  s.low = std::floor(s.low);
  s.high = std::ceil(s.high + 1e-9);
  double bottom = kTop + kChart, legend = bottom + (r.source.empty() ? 60 : 50), map = legend + 42;
  double height = map + kCell * static_cast<double>(r.with.map.size()) + 28;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "role=\"img\" aria-label=\"{2}\">\n<style>\n{3}</style>\n<rect class=\"back\" width=\"{0}\" "
      "height=\"{1}\"/>\n<text class=\"title\" x=\"18\" y=\"28\">{2}</text>\n",
      kWidth, height, translator::utf8::markup(translator::utf8::fit(titles.title, 80)), kStyle);
  int decades = static_cast<int>(s.high - s.low), every = decades > 8 ? 2 : 1;
  for (int d = static_cast<int>(s.high); d >= static_cast<int>(s.low); d -= every)
    out += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                       kLeft, kWidth - kRight, s.y(d), s.y(d)) +
           power(kLeft - 8, s.y(d) + 5, d);
  out += axis(r, s, bottom + 19);
  if (r.source.empty())
    out += fmt::format(
        "<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">source {}</text>\n",
        (kLeft + kWidth - kRight) / 2, bottom + 38, unit_of(r, titles));
  out += bars(s, r.with) + line(s, r.without, "without") + line(s, r.with, "with");
  std::string other = r.weights == "fresh" || titles.versus ? "without" : "short cut stopped";
  double key = 51;
  for (auto [name, text, l] :
       {std::tuple("with", std::string("with"), &r.with), std::tuple("without", other, &r.without)}) {
    out += fmt::format(
        "<polyline class=\"{0}\" points=\"18,{1:.1f} 52,{1:.1f}\"/><text class=\"{0}\" x=\"59\" "
        "y=\"{2:.1f}\">{3}: {6} 1 gets {4} {6} {5}</text>\n",
        name, key, key + 5, text, as_fraction(l->median[0]), s.words, unit_of(r, titles));
    key += 19;
  }
  double x = kLeft;
  for (auto [name, words] : {std::pair("value", "value path: through the mixture"),
                             std::pair("score", "score path: through the weights"),
                             std::pair("rest", "recurrent path: from state to state")}) {
    out += fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"12\"/><text class=\"quiet small\" "
        "x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        name, x, legend - 11, x + 19, legend, words);
    x += 226;
  }
  return out + maps(r, other, unit_of(r, titles), map) + "</svg>\n";
}

}  // namespace lens
