// The text and the trace of `lens flow`.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <common/utf8.h>

#include "explain/text_parts.h"
#include "flow.h"

namespace lens {
namespace {

using translator::utf8::fit, translator::utf8::wrapped;

// "word 1 gets 1/300000 of word 30: 10^-5.5 (10^-6.8 to 10^-4.9)"
std::string factor(const FlowResult& r, const FlowLine& l, size_t j, const char* unit) {
  std::string out = fmt::format("{4} {0} gets {1} {4} {2}: {3}", j + 1, as_fraction(l.median[j]),
                                l.median.size(), power(l.median[j]), unit);
  if (r.source.empty()) out += fmt::format(" ({} to {})", power(l.low[j]), power(l.high[j]));
  return out;
}

size_t worst_off(const FlowLine& l) {
  return static_cast<size_t>(std::min_element(l.median.begin(), l.median.end()) - l.median.begin());
}

// Of the lines, as they stand in a terminal.
std::pair<const char*, const char*> names_of(const FlowTitles& titles) {
  return titles.transformer ? std::pair("words", "states") : std::pair("without", "with");
}

std::string map_text(const FlowResult& r, const FlowTitles& titles) {
  const auto lines = names_of(titles);
  FlowRange range = range_of_maps(r);
  std::string out =
      "\n" + paragraph(fmt::format(
                 "|dL_t/dh_j| of each target word's loss alone, both on one log scale, {} ▁ to {} █{}",
                 power(range.low), power(range.high), r.source.empty() ? ", median" : ""));
  const int width = std::clamp(translator::utf8::widest(r.target), 2, 14);
  for (auto [name, line] : {std::pair(lines.first, &r.without), std::pair(lines.second, &r.with)})
    for (size_t t = 0; t < line->map.size(); ++t) {
      const std::string label = r.target.empty() ? std::to_string(t + 1) : fit(r.target[t], width);
      out += fmt::format("  {:<8} {}  {}\n", t ? "" : name, translator::utf8::pad_left(label, width),
                         blocks(line->map[t], range));
    }
  return out;
}

}  // namespace

void FlowRange::take(const std::vector<double>& all) {
  for (double x : all)
    if (std::isfinite(x)) {
      low = std::min(low, x);
      high = std::max(high, x);
    }
}

std::string blocks(const std::vector<double>& row, const FlowRange& range) {
  static const char* const shapes[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  auto [low, high] = range;
  std::string out;
  for (double x : row) {
    double part = high > low ? (std::clamp(x, low, high) - low) / (high - low) : 1;
    out += shapes[std::isnan(x) ? 0 : 1 + static_cast<int>(std::lround(7 * part))];
  }
  return out;
}

FlowRange range_of_maps(const FlowResult& r) {
  FlowRange range;
  for (const FlowLine* l : {&r.without, &r.with})
    for (const auto& row : l->map) range.take(row);
  return range;
}

std::string tenths(double x) { return fmt::format("{:.1f}", std::round(10 * x) / 10 + 0.0); }

std::string power(double log10) { return log10 == -HUGE_VAL ? "0" : "10^" + tenths(log10); }

std::vector<double> whole_percents(const std::vector<double>& shares) {
  std::vector<double> out;
  double left = 100;
  for (double share : shares) {
    out.push_back(std::floor(100 * share));
    left -= out.back();
  }
  if (left > static_cast<double>(shares.size())) left = 0;  // no gradient, which has no ways
  for (; left > 0; --left) {
    size_t most = 0;
    for (size_t i = 1; i < out.size(); ++i)
      if (100 * shares[i] - out[i] > 100 * shares[most] - out[most]) most = i;
    ++out[most];
  }
  return out;
}

std::string as_fraction(double log10) {
  if (std::isnan(log10)) return "NaN of";
  if (!std::isfinite(log10)) return log10 < 0 ? "nothing of" : "infinitely more than";
  double times = std::pow(10, -log10);
  if (times > 0.95 && times < 1.05) return "as much as";
  // Above 100 one digit, far above a power of ten.
  auto rounded = [](double x, const char* power) {
    if (x < 100) return fmt::format("{:.2g}", x);
    double magnitude = std::pow(10, std::floor(std::log10(x))), whole = std::round(x / magnitude) * magnitude;
    return whole < 1e9 ? fmt::format("{:.0f}", whole) : fmt::format(fmt::runtime(power), std::log10(x));
  };
  if (times < 1.5) return rounded(1 / times, "10^{:.0f}") + " times as much as";
  return "1/" + rounded(times, "(10^{:.0f})") + " of";
}

std::string flow_text(const FlowResult& r, const FlowTitles& titles) {
  FlowRange range{0, 0};
  for (const FlowLine* l : {&r.with, &r.without}) range.take(l->median);
  std::string out = paragraph(titles.title);
  const char* unit = unit_of(r, titles);
  const auto lines = names_of(titles);
  if (titles.transformer)
    out += paragraph("states: h_j, what the encoder makes of source " + std::string(unit) +
                     " j and every layer of the decoder attends to; words: h_j, the vector with its position "
                     "that the encoder reads.");
  out += fmt::format("|dL/dh_j| over the source {}s, log scale{}\n\n", unit,
                     r.source.empty() ? fmt::format(", median of {}", titles.seeds) : "");
  if (!r.source.empty()) {
    std::string names;
    for (size_t j = 0; j < r.source.size(); ++j)
      names += fmt::format("{}{} {}", j ? "  " : "", j + 1, r.source[j]);
    out += wrapped(names, 80, 2) + "\n";
  }
  for (auto [name, line] : {std::pair(lines.first, &r.without), std::pair(lines.second, &r.with)})
    out += fmt::format("  {:<8} {}\n", name, blocks(line->median, range));
  out += "\n";
  for (auto [name, line] : {std::pair(lines.first, &r.without), std::pair(lines.second, &r.with)}) {
    out += fmt::format("  {:<8} {}\n", name, factor(r, *line, 0, unit));
    // Read both ways the first word is near one end; the middle is far from both.
    if (size_t worst = worst_off(*line); r.bidirectional && worst > 0 && worst + 1 < line->median.size())
      out += fmt::format("  {:<8} {}\n", "", factor(r, *line, worst, unit));
  }
  std::vector<double> shares{r.with.value[0], r.with.score[0]};
  if (!titles.transformer) shares.push_back(r.with.recurrent[0]);
  const std::vector<double> percents = whole_percents(shares);
  if (titles.transformer)
    out += "\n" + paragraph(fmt::format(
                      "Of what reaches state 1: {:.0f} % by the value path (through the mixtures of all layers "
                      "and heads), {:.0f} % by the score path (through their weights). There is no recurrent "
                      "path: what the states got goes through the encoder to the words.",
                      percents[0], percents[1]));
  else
    out += "\n" + paragraph(fmt::format(
                      "Of what reaches {} 1 with attention: {:.0f} % by the value path (through the mixture), "
                      "{:.0f} % by the score path (through the weights), {:.0f} % by the recurrent path (from "
                      "state to state).",
                      unit, percents[0], percents[1], percents[2]));
  out += map_text(r, titles) + "\n";
  if (titles.pieces == "added" && !r.source.empty())
    out += paragraph(
        "The model reads and writes pieces of words: the gradients of a word's pieces are added, and so "
        "are a target word's losses. --pieces shows pieces.");
  if (titles.without != "no attention" && !titles.transformer)
    out += paragraph("without: " + titles.without + ".");
  if (r.weights == "fresh") out += paragraph(titles.setup + ".");
  std::string checks = fmt::format("{} lengths compared with finite differences, worst relative error {:.0e}",
                                   r.checks.count, r.checks.worst);
  if (r.checks.small)
    checks += fmt::format(" ({} are too small for them, about 10^-7 of the loss, and compared with that)",
                          r.checks.small);
  checks += ".";
  if (r.checks.undecided)
    checks += fmt::format(" {} more lie between kinks of a relu too near for differences of any step.",
                          r.checks.undecided);
  return out + paragraph(checks);
}

const char* unit_of(const FlowResult& r, const FlowTitles& titles) {
  const bool words =
      titles.pieces.empty() || r.weights == "fresh" || (!r.source.empty() && titles.pieces == "added");
  return words ? "word" : "piece";
}

json flow_json(const std::vector<FlowResult>& results, const FlowTitles& titles, size_t show) {
  Numbers number{4};
  auto or_null = [](const auto& x) { return x.empty() ? json(nullptr) : json(x); };
  auto line_json = [&](const FlowLine& l) -> json {
    json map = json::array();
    for (const auto& row : l.map) map.push_back(number(row));
    return {{"median", number(l.median)},
            {"low", number(l.low)},
            {"high", number(l.high)},
            {"value", or_null(number(l.value))},
            {"score", or_null(number(l.score))},
            {"recurrent", or_null(number(l.recurrent))},
            {"map", map}};
  };
  json all = json::array();
  FlowChecks checks;
  for (const FlowResult& r : results) {
    checks.add(r.checks);
    all.push_back({{"weights", r.weights},
                   {"cell", r.cell},
                   {"directions", r.bidirectional ? 2 : 1},
                   {"length", r.length},
                   {"source", or_null(r.source)},
                   {"target", or_null(r.target)},
                   {"with", line_json(r.with)},
                   {"without", line_json(r.without)}});
  }
  json out = {{"format", "gradus-lens-trace"},
              {"version", 1},
              {"kind", "flow"},
              {"title", titles.title},
              {"setup", titles.setup},
              {"model", or_null(titles.model)},
              {"without", titles.without},
              {"versus", titles.versus},
              {"seeds", titles.seeds},
              {"show", show},
              {"checks",
               {{"count", checks.count},
                {"small", checks.small},
                {"undecided", checks.undecided},
                {"worst", number(checks.worst)}}},
              {"results", all}};
  if (!titles.pieces.empty()) out["pieces"] = titles.pieces;
  if (titles.transformer) out["transformer"] = true;
  return out;
}

}  // namespace lens
