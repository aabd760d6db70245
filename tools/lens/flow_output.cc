// The picture and the text of `lens flow`.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "flow.h"

namespace lens {
namespace {

constexpr double kLeft = 62, kRight = 24, kTop = 58, kBottom = 48, kWidth = 760, kHeight = 400;

struct Scale {
  double low, high;
  size_t words;
  double x(size_t j) const {
    return kLeft + (kWidth - kLeft - kRight) * static_cast<double>(j) / static_cast<double>(words - 1);
  }
  double y(double log10) const {
    return kTop + (kHeight - kTop - kBottom) * (high - std::max(log10, low)) / (high - low);
  }
};

std::string points(const Scale& s, const std::vector<double>& line, bool backwards = false) {
  std::string out;
  for (size_t k = 0; k < line.size(); ++k) {
    size_t j = backwards ? line.size() - 1 - k : k;
    out += fmt::format("{:.1f},{:.1f} ", s.x(j), s.y(line[j]));
  }
  return out;
}

std::string line(const Scale& s, const FlowLine& l, const char* name) {
  return fmt::format(
      "<polygon class=\"{0} band\" points=\"{1}{2}\"/><polyline class=\"{0}\" points=\"{3}\"/>\n", name,
      points(s, l.high), points(s, l.low, true), points(s, l.median));
}

}  // namespace

std::string as_fraction(double log10) {
  if (!std::isfinite(log10)) return log10 < 0 ? "nothing of" : "infinitely more than";
  double times = std::pow(10, -log10);
  if (times < 1.5) return fmt::format("{:.2g} times as much as", 1 / times);
  if (times < 100) return fmt::format("1/{:.2g} of", times);
  double magnitude = std::pow(10, std::floor(std::log10(times)));
  double rounded = std::round(times / magnitude) * magnitude;
  return rounded < 1e9 ? fmt::format("1/{:.0f} of", rounded)
                       : fmt::format("1/(10^{:.0f}) of", std::round(-log10));
}

std::string flow_svg(const FlowResult& r, const std::string& title) {
  Scale s{0, 0, r.with.median.size()};
  for (const FlowLine* l : {&r.with, &r.without}) {
    for (double x : l->low) s.low = std::min(s.low, std::isfinite(x) ? x : 0);
    for (double x : l->high) s.high = std::max(s.high, std::isfinite(x) ? x : 0);
  }
  s.low = std::floor(s.low);
  s.high = std::ceil(s.high);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "aria-label=\"{2}\">\n"
      "<style>\n"
      "text {{ font: 14px system-ui, sans-serif; fill: #18202b; }} .quiet {{ fill: #566071; }} .title {{ font-size: 17px; font-weight: 600; }}\n"
      "rect {{ fill: #ffffff; }} .grid {{ stroke: #d5dae2; }} polyline {{ fill: none; stroke-width: 3; }}\n"
      ".with {{ stroke: #08519c; }} .without {{ stroke: #d2620a; stroke-dasharray: 9 5; }} .band {{ stroke: none; fill-opacity: .15; }}\n"
      ".with.band, text.with {{ fill: #08519c; stroke: none; }} .without.band, text.without {{ fill: #d2620a; stroke: none; }}\n"
      "@media (prefers-color-scheme: dark) {{ rect {{ fill: #181d25; }} text {{ fill: #e8ebf0; }} .quiet {{ fill: #9aa5b5; }}\n"
      "  .grid {{ stroke: #343c49; }} .with {{ stroke: #7db8f7; }} .without {{ stroke: #ff9a3d; }}\n"
      "  .with.band, text.with {{ fill: #7db8f7; stroke: none; }} .without.band, text.without {{ fill: #ff9a3d; stroke: none; }} }}\n"
      "</style>\n<rect width=\"{0}\" height=\"{1}\"/>\n<text class=\"title\" x=\"{3}\" y=\"28\">{2}</text>\n",
      kWidth, kHeight, title, kLeft - 44);
  int decades = static_cast<int>(s.high - s.low), every = decades > 8 ? 2 : 1;
  for (int d = static_cast<int>(s.low); d <= static_cast<int>(s.high); d += every)
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">10<tspan dy=\"-6\" "
        "font-size=\"11\">{}</tspan></text>\n",
        kLeft, kWidth - kRight, s.y(d), s.y(d), kLeft - 8, s.y(d) + 5, d);
  size_t words = s.words, step = std::max<size_t>(1, words / 6);
  for (size_t j = 0; j < words; j += step)
    out += fmt::format("<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                       s.x(j), kHeight - kBottom + 19, j + 1);
  out += fmt::format(
      "<text class=\"quiet\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">source word</text>\n",
      (kLeft + kWidth - kRight) / 2, kHeight - 10);
  out += line(s, r.without, "without") + line(s, r.with, "with");
  // Each name where its line has room.
  size_t at = words / 6;
  out += fmt::format("<text class=\"with\" x=\"{:.1f}\" y=\"{:.1f}\">with attention</text>\n", s.x(at),
                     std::min(kHeight - kBottom - 28, s.y(r.with.low[at]) + 20));
  out += fmt::format(
      "<text class=\"without\" x=\"{:.1f}\" y=\"{:.1f}\">without: word 1 gets {} word {}</text>\n",
      s.x(at) + 26, std::min(kHeight - kBottom - 8, s.y(r.without.low[at]) + 10),
      as_fraction(r.without.median[0]), words);
  return out + "</svg>\n";
}

std::string flow_text(const FlowResult& r, const std::string& title) {
  static const char* const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double low = 0, high = 0;
  for (const FlowLine* l : {&r.with, &r.without})
    for (double x : l->median)
      if (std::isfinite(x)) {
        low = std::min(low, x);
        high = std::max(high, x);
      }
  auto row = [&](const FlowLine& l) {
    std::string out;
    for (double x : l.median) {
      double part = high > low ? (std::max(x, low) - low) / (high - low) : 1;
      out += blocks[std::isnan(x) ? 0 : 1 + static_cast<int>(std::lround(7 * part))];
    }
    return out;
  };
  size_t last = r.with.median.size();
  auto factor = [&](const FlowLine& l) {
    return fmt::format("10^{:.1f} (10^{:.1f} to 10^{:.1f})", l.median[0], l.low[0], l.high[0]);
  };
  std::string out = title + "\n|dL/dh_j| over the source words, log scale, median\n\n";
  out += fmt::format("  without attention  {}  word 1 gets {} word {}: {}\n", row(r.without),
                     as_fraction(r.without.median[0]), last, factor(r.without));
  out += fmt::format("  with attention     {}  word 1 gets {} word {}: {}\n", row(r.with),
                     as_fraction(r.with.median[0]), last, factor(r.with));
  if (!r.with.value.empty())
    out += fmt::format(
        "\nOf what reaches word 1 with attention: {:.0f} % through the mixture, {:.0f} % through the weights, {:.0f} % "
        "through other states.\n",
        100 * r.with.value[0], 100 * r.with.score[0], 100 * r.with.recurrent[0]);
  out += fmt::format("First and last word's gradients agree with finite differences to {:.0e}.\n",
                     r.worst_error);
  return out;
}

json flow_json(const std::vector<FlowResult>& results, const std::string& title, bool trained, int seeds,
               size_t show) {
  Numbers number{5};
  json all = json::array();
  auto line_json = [&](const FlowLine& l) {
    json out = {{"median", number(l.median)}, {"low", number(l.low)}, {"high", number(l.high)}};
    for (auto [name, x] :
         {std::pair("value", &l.value), std::pair("score", &l.score), std::pair("recurrent", &l.recurrent)})
      out[name] = x->empty() ? json(nullptr) : number(*x);
    return out;
  };
  double worst = 0;
  for (const FlowResult& r : results) {
    worst = std::max(worst, r.worst_error);
    all.push_back({{"cell", r.setting.cell},
                   {"directions", r.setting.bidirectional ? 2 : 1},
                   {"length", r.setting.length},
                   {"with", line_json(r.with)},
                   {"without", line_json(r.without)}});
  }
  return {{"format", "gradus-lens-trace"},
          {"version", 1},
          {"kind", "flow"},
          {"title", title},
          {"trained", trained},
          {"seeds", seeds},
          {"show", show},
          {"worst_error", number(worst)},
          {"results", all}};
}

}  // namespace lens
