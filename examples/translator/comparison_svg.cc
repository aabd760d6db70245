#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <translator/comparison.h>
#include <common/utf8.h>

namespace translator {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : utf8::printable(text)) {  // XML has no control characters
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

// White to dark blue.
std::string colour(float weight) {
  double w = std::clamp(std::isfinite(weight) ? static_cast<double>(weight) : 0.0, 0.0, 1.0);
  auto mix = [w](double from, double to) { return static_cast<int>(std::lround(from + w * (to - from))); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(247, 8), mix(251, 48), mix(255, 107));
}

// Letters are drawn 11 high; about 6.2 wide each.
constexpr double kCell = 18, kLetter = 6.2, kGap = 24;

double longest(const std::vector<std::string>& words) {
  size_t n = 0;
  for (const std::string& w : words) n = std::max(n, w.size());
  return static_cast<double>(n) * kLetter;
}

struct Size {
  double left, top, width, height;  // of the words' margins, and of the whole
};

Size size_of(const SentenceMap& m) {
  double left = longest(m.target) + 8, top = longest(m.source) * 0.75 + 34;
  return {left, top, left + kCell * static_cast<double>(m.source.size()) + 0.6 * longest(m.source),
          top + kCell * static_cast<double>(m.target.size())};
}

std::string one_map(const RaceRow& row, double x, double y) {
  const SentenceMap& m = row.map;
  Size s = size_of(m);
  std::string out = fmt::format("<g transform=\"translate({:.0f} {:.0f})\">\n", x, y);
  out += fmt::format("<text x=\"0\" y=\"14\" class=\"name\">{}</text>\n", escaped(row.attention));
  for (size_t i = 0; i < m.source.size(); ++i)
    out += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-45)\">{}</text>\n",
                       s.left + kCell * (static_cast<double>(i) + 0.5), s.top - 6, escaped(m.source[i]));
  for (size_t t = 0; t < m.target.size(); ++t) {
    double top = s.top + kCell * static_cast<double>(t);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", s.left - 5,
                       top + 13, escaped(m.target[t]));
    for (size_t i = 0; i < m.source.size(); ++i)
      out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"{}\"/>\n",
                         s.left + kCell * static_cast<double>(i), top, kCell - 1, kCell - 1,
                         colour(m.weights[t][i]));
  }
  return out + "</g>\n";
}

}  // namespace

std::string race_svg(const std::vector<RaceRow>& rows) {
  constexpr int kBeside = 4;
  double x = kGap, y = kGap, right = 0, line_height = 0;
  int drawn = 0;
  std::string body;
  for (const RaceRow& row : rows) {
    if (row.map.weights.empty()) continue;
    if (drawn > 0 && drawn % kBeside == 0) {
      x = kGap;
      y += line_height + kGap;
      line_height = 0;
    }
    Size s = size_of(row.map);
    body += one_map(row, x, y);
    x += s.width + kGap;
    right = std::max(right, x);
    line_height = std::max(line_height, s.height);
    ++drawn;
  }
  double width = std::max(right, 2 * kGap), height = y + line_height + kGap;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n",
             width, height) +
         "<style>text { font: 11px sans-serif; fill: #222 } .name { font-weight: bold; font-size: 14px }"
         "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" +
         body + "</svg>\n";
}

}  // namespace translator
