#include "chart.h"

#include <common/spread.h>
#include <common/utf8.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace papers {
namespace {

using translator::utf8::markup;

constexpr double kWidth = 480, kLeft = 52, kRight = 16, kPanel = 190, kLine = 20;
constexpr size_t kColours = 6;

// Each series has a colour, a dash and a mark: colours alone do not reach everyone.
const char* const kLight[kColours] = {"#08519c", "#d2620a", "#8a3fa0", "#2f7d32", "#b3261e", "#566071"};
const char* const kDark[kColours] = {"#7db8f7", "#ff9a3d", "#d79bea", "#7fd183", "#ff8a80", "#b3bccb"};
const char* const kDash[kColours] = {"none", "9 4", "2 3", "12 3 3 3", "5 2", "1 5"};

std::string style() {
  std::string out =
      "text { font: 14px system-ui, sans-serif; fill: #18202b; } .quiet { fill: #566071; } .back { fill: "
      "#ffffff; }\n.title { font-weight: 600; } .grid { stroke: #d5dae2; } .guide { stroke: #566071; "
      "stroke-dasharray: 3 3; }\npolyline { fill: none; stroke-width: 2.5; } .range { stroke-width: 1.5; } "
      ".band { fill-opacity: .15; }\n";
  auto colours = [](const char* const* of) {
    std::string rules;
    for (size_t i = 0; i < kColours; ++i)
      rules += fmt::format(".s{0} {{ stroke: {1}; }} .f{0} {{ fill: {1}; }}\n", i, of[i]);
    return rules;
  };
  out += colours(kLight);
  for (size_t i = 0; i < kColours; ++i)
    out += fmt::format("polyline.s{} {{ stroke-dasharray: {}; }}\n", i, kDash[i]);
  return out +
         "@media (prefers-color-scheme: dark) { .back { fill: #181d25; } text { fill: #e8ebf0; }\n"
         ".quiet { fill: #9aa5b5; } .grid { stroke: #343c49; } .guide { stroke: #9aa5b5; }\n" +
         colours(kDark) + "}\n";
}

std::string text(double x, double y, const std::string& what, const char* anchor = "start",
                 const char* kind = "quiet") {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", kind, x,
                     y, anchor, markup(what));
}

std::string mark(size_t series, double x, double y) {
  switch (series % 3) {
    case 0: return fmt::format("<circle class=\"f{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>", series, x, y);
    case 1:
      return fmt::format("<rect class=\"f{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"7.5\" height=\"7.5\"/>",
                         series, x - 3.75, y - 3.75);
    default: return fmt::format("<path class=\"f{}\" d=\"M{:.1f} {:.1f}l5 8.5h-10z\"/>", series, x, y - 5);
  }
}

// A value as short as it can be told: 25, 0.5.
std::string tick(double value) { return fmt::format("{:.4g}", value); }

std::vector<double> finite(const std::vector<double>& values) {
  std::vector<double> out;
  for (double v : values)
    if (std::isfinite(v)) out.push_back(v);
  return out;
}

struct Scale {
  const Panel& panel;
  double top;
  double x(double place) const {
    return kLeft + (kWidth - kLeft - kRight) * (place + 0.5) / static_cast<double>(panel.places.size());
  }
  double y(double value) const {
    auto at = [this](double v) { return panel.log ? std::log2(v) : v; };
    const double inside = std::clamp(value, panel.low, panel.high);
    return top + kPanel * (at(panel.high) - at(inside)) / (at(panel.high) - at(panel.low));
  }
};

std::string axes(const Panel& p, const Scale& s) {
  std::vector<double> at;
  if (p.log) {
    for (double v = p.low; v <= p.high * 1.001; v *= 2) at.push_back(v);
  } else {
    double step = std::pow(10, std::floor(std::log10((p.high - p.low) / 4)));
    while ((p.high - p.low) / step > 5.001) step *= (p.high - p.low) / step > 12.5 ? 5 : 2;
    for (double v = std::ceil(p.low / step) * step; v <= p.high + 1e-9 * step; v += step) at.push_back(v);
  }
  std::string out;
  for (double v : at)
    out += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                       kLeft, kWidth - kRight, s.y(v), s.y(v)) +
           text(kLeft - 8, s.y(v) + 5, tick(p.factor * v), "end");
  if (std::isfinite(p.guide))
    out += fmt::format("<line class=\"guide\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                       kLeft, kWidth - kRight, s.y(p.guide), s.y(p.guide));
  for (size_t i = 0; i < p.places.size(); ++i)
    out += text(s.x(static_cast<double>(i)), s.top + kPanel + kLine, p.places[i], "middle");
  return out + text((kLeft + kWidth - kRight) / 2, s.top + kPanel + 2 * kLine, p.x_name, "middle");
}

std::string range(size_t series, double x, double from, double to) {
  return fmt::format("<line class=\"range s{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                     series, x, x, from, to);
}

std::string drawn(const Panel& p, const Scale& s, size_t number) {
  const Series& series = p.series[number];
  const double count = static_cast<double>(p.series.size()), wide = 0.8 / count;
  std::string points, out;
  for (size_t i = 0; i < series.values.size(); ++i) {
    const std::vector<double> values = finite(series.values[i]);
    if (values.empty()) continue;
    auto [least, most] = std::minmax_element(values.begin(), values.end());
    const double mean = translator::spread_of(values).mean, i_th = static_cast<double>(number);
    // Side by side, so that equal values can all be seen: lines by little, bars by their width.
    const double shift = p.bars ? wide * (i_th - (count - 1) / 2) : 0.05 * (i_th - (count - 1) / 2);
    const double x = s.x(static_cast<double>(i) + shift), y = s.y(mean);
    if (p.bars)
      out += fmt::format("<rect class=\"f{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
                         number, s.x(static_cast<double>(i) + shift - 0.45 * wide), y,
                         0.9 * wide * (s.x(1) - s.x(0)), s.y(p.low) - y);
    else
      out += mark(number, x, y);
    if (*least < *most) out += range(p.bars ? kColours - 1 : number, x, s.y(*most), s.y(*least));
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x, y);
  }
  if (!p.bars) out = fmt::format("<polyline class=\"s{}\" points=\"{}\"/>", number, points) + out;
  return out + "\n";
}

// The names of the series, as many in a line as fit.
std::string legend(const Panel& p, double& y) {
  std::string out;
  double x = kLeft;
  for (size_t i = 0; i < p.series.size(); ++i) {
    const double width = 50 + 7.3 * translator::utf8::display_width(p.series[i].name);
    if (i > 0 && x + width > kWidth) {
      x = kLeft;
      y += kLine;
    }
    if (!p.bars)
      out += fmt::format("<polyline class=\"s{0}\" points=\"{1:.1f},{3:.1f} {2:.1f},{3:.1f}\"/>", i, x,
                         x + 30, y - 5);
    out += mark(i, x + 15, y - 5) + text(x + 37, y, p.series[i].name, "start", "");
    x += width;
  }
  return out;
}

}  // namespace

std::string chart_svg(const std::string& title, const std::vector<Panel>& panels) {
  double y = 0;
  std::string body;
  for (const Panel& p : panels) {
    y += kLine + 6;
    body += text(18, y, p.title, "start", "title");
    y += kLine + 4;
    body += legend(p, y);
    y += 14;
    Scale s{p, y};
    body += axes(p, s);
    for (size_t i = 0; i < p.series.size(); ++i) body += drawn(p, s, i);
    y += kPanel + 2 * kLine + 12;
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
             "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">\n<style>\n{3}</style>\n<rect "
             "class=\"back\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n",
             kWidth, y, markup(title), style()) +
         body + "</svg>\n";
}

}  // namespace papers
