#pragma once

// The picture of 02_worked_attention: five heat maps of one attention step.

#include <fmt/core.h>

#include <string>
#include <vector>

#include <gradus/tensor.h>

namespace worked {

constexpr double kCellWidth = 58, kCellHeight = 34, kLargest = 60;  // what is as deep as can be

const char* const kStyle =
    "text { font: 14px system-ui, sans-serif; fill: #18202b; } .quiet { fill: #566071; }\n"
    ".number { text-anchor: middle; } .back { fill: #ffffff; } .deep { fill: #ffffff; }\n"
    ".cell { fill: #08519c; } .frame { fill: none; stroke: #b9c1cd; }\n"
    "@media (prefers-color-scheme: dark) { .back { fill: #181d25; } text { fill: #e8ebf0; }\n"
    "  .quiet { fill: #9aa5b5; } .deep { fill: #10151c; } .cell { fill: #7db8f7; } .frame { stroke: #465061; } "
    "}\n";

inline std::string number(double x) { return fmt::format("{:.4g}", x); }

/// A column for each row of x [columns, units], a row for each unit; below each column `below`.
inline std::string heat_map(double left, double top, const std::string& title, const gradus::Tensor& x,
                            const std::vector<std::string>& below = {}) {
  std::string out = fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", left, top - 9, title);
  const int64_t columns = x.size(0), units = x.size(1);
  for (int64_t s = 0; s < columns; ++s) {
    const double at = left + kCellWidth * static_cast<double>(s), middle = at + kCellWidth / 2;
    for (int64_t u = 0; u < units; ++u) {
      const double value = x.at(s * units + u), depth = value / kLargest;
      const double y = top + kCellHeight * static_cast<double>(u);
      out += fmt::format(
          "<rect class=\"cell\" x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" fill-opacity=\"{4:.3f}\"/>"
          "<rect class=\"frame\" x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\"/>"
          "<text class=\"number{5}\" x=\"{6}\" y=\"{7}\">{8}</text>\n",
          at, y, kCellWidth, kCellHeight, depth, depth > 0.5 ? " deep" : "", middle, y + 22, number(value));
    }
    if (!below.empty())
      out += fmt::format("<text class=\"quiet number\" x=\"{}\" y=\"{}\">{}</text>\n", middle,
                         top + kCellHeight * static_cast<double>(units) + 18, below[static_cast<size_t>(s)]);
  }
  return out;
}

/// state [H], annotations [S, H], scores [S], weights [S], context [H]; one scale of colour for all.
inline std::string heat_maps(const gradus::Tensor& state, const gradus::Tensor& annotations,
                             const gradus::Tensor& scores, const gradus::Tensor& weights,
                             const gradus::Tensor& context) {
  const int64_t S = annotations.size(0), H = annotations.size(1);
  gradus::Tensor applied = annotations.clone();
  std::vector<std::string> score_texts, weight_texts;
  for (int64_t s = 0; s < S; ++s) {
    for (int64_t u = 0; u < H; ++u) applied.set(s * H + u, weights.at(s) * annotations.at(s * H + u));
    score_texts.push_back(fmt::format("{:.0f}", scores.at(s)));
    weight_texts.push_back(number(weights.at(s)));
  }
  auto column = [H](const gradus::Tensor& x) { return x.reshape({1, H}); };
  const double left = 20, right = 330, upper = 40, lower = 204, width = right + 4 * kCellWidth + 20;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} 344\" width=\"{0}\" height=\"344\" "
             "role=\"img\" aria-label=\"One attention step as five heat maps\">\n<style>\n{1}</style>\n"
             "<rect class=\"back\" width=\"{0}\" height=\"344\"/>\n",
             width, kStyle) +
         heat_map(left, upper, "1  state q", column(state)) +
         heat_map(left + 140, upper, "2  annotation h_0", annotations.row(0).reshape({1, H}),
                  {score_texts[0]}) +
         heat_map(right, upper, "3  all annotations; scores below", annotations, score_texts) +
         heat_map(left, lower, "4  applied, a_s h_s; weights below", applied, weight_texts) +
         heat_map(right, lower, "5  context c, their sum", column(context)) + "</svg>\n";
}

}  // namespace worked
