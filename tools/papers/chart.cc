#include "chart.h"

#include <common/spread.h>
#include <common/utf8.h>
#include <fmt/core.h>

#include <algorithm>

namespace papers {
namespace {

using translator::utf8::markup;

constexpr double kWidth = 480, kLeft = 52, kRight = 16, kPanel = 190, kLine = 20;
constexpr double kFont = 15, kSmallFont = 13, kLetter = 0.54;  // a letter is about so wide, in heights
constexpr double kLeastBar = 1.5;                              // so that 0 is seen to be a result
constexpr size_t kColours = 6;

// Each series has a colour, a dash and a mark: colours alone do not reach everyone.
const char* const kLight[kColours] = {"#08519c", "#b85000", "#8a3fa0", "#2f7d32", "#b3261e", "#566071"};
const char* const kDark[kColours] = {"#7db8f7", "#ff9a3d", "#d79bea", "#7fd183", "#ff8a80", "#b3bccb"};
const char* const kDash[kColours] = {"none", "9 4", "2 3", "12 3 3 3", "5 2", "1 5"};

std::string style() {
  std::string out =
      fmt::format(
          "text {{ font: {}px system-ui, sans-serif; fill: #18202b; }} .small {{ font-size: {}px; }}\n",
          kFont, kSmallFont) +
      ".quiet { fill: #566071; } .back { fill: #ffffff; } .title { font-weight: 600; }\n"
      ".grid { stroke: #d5dae2; } .guide { stroke: #566071; stroke-dasharray: 3 3; }\n"
      "polyline { fill: none; stroke-width: 2.5; } .range { stroke-width: 1.5; }\n";
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

double width_of(const std::string& text) { return kLetter * kFont * translator::utf8::display_width(text); }

std::string guide(double from, double to, double y) {
  return fmt::format("<line class=\"guide\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                     from, to, y, y);
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
  if (std::isfinite(p.guide)) out += guide(kLeft, kWidth - kRight, s.y(p.guide));
  bool crowded = false;
  for (size_t i = 1; i < p.places.size(); ++i)
    crowded = crowded || (width_of(p.places[i - 1]) + width_of(p.places[i])) / 2 + 3 > s.x(1) - s.x(0);
  for (size_t i = 0; i < p.places.size(); ++i)
    out += text(s.x(static_cast<double>(i)), s.top + kPanel + kLine, p.places[i], "middle",
                crowded ? "quiet small" : "quiet");
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
    const double height = std::max(kLeastBar, s.y(p.low) - y);
    if (p.bars)
      out += fmt::format("<rect class=\"f{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
                         number, s.x(static_cast<double>(i) + shift - 0.45 * wide), s.y(p.low) - height,
                         0.9 * wide * (s.x(1) - s.x(0)), height);
    else
      out += mark(number, x, y);
    if (*least < *most) out += range(p.bars ? kColours - 1 : number, x, s.y(*most), s.y(*least));
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x, y);
  }
  if (!p.bars) out = fmt::format("<polyline class=\"s{}\" points=\"{}\"/>", number, points) + out;
  return out + "\n";
}

// The names of several series and of the guide, as many in a line as fit.
std::string legend(const Panel& p, double& y) {
  std::string out;
  double x = kWidth;
  auto place = [&](const std::string& name, double sign) {
    const double width = sign + 7 + width_of(name);
    if (x + width > kWidth) {
      x = kLeft;
      y += kLine;
    }
    out += text(x + sign + 7, y, name, "start", "");
    x += width + 16;
    return x - width - 16;
  };
  for (size_t i = 0; i < p.series.size() && p.series.size() > 1; ++i) {
    const double at = place(p.series[i].name, p.bars ? 11 : 30);
    if (p.bars)
      out += fmt::format("<rect class=\"f{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"11\" height=\"11\"/>", i, at,
                         y - 10.5);
    else
      out += fmt::format("<polyline class=\"s{0}\" points=\"{1:.1f},{3:.1f} {2:.1f},{3:.1f}\"/>", i, at,
                         at + 30, y - 5) +
             mark(i, at + 15, y - 5);
  }
  if (!p.guide_name.empty()) {
    const double at = place(p.guide_name, 30);
    out += guide(at, at + 30, y - 5);
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
    y += 4;
    body += legend(p, y);
    y += 16;
    Scale s{p, y};
    body += axes(p, s);
    for (size_t i = 0; i < p.series.size(); ++i) body += drawn(p, s, i);
    y += kPanel + (p.x_name.empty() ? 1 : 2) * kLine + 12;
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
             "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">\n<style>\n{3}</style>\n<rect "
             "class=\"back\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n",
             kWidth, y, markup(title), style()) +
         body + "</svg>\n";
}

}  // namespace papers
