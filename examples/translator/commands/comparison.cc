#include <translator/commands/comparison.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include <common/heat_map.h>
#include <common/progress.h>
#include <common/json_text.h>
#include <common/split.h>
#include <common/utf8.h>

namespace translator {
namespace {

using json = nlohmann::ordered_json;
using namespace std::string_literals;

json optional_number(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

std::optional<double> number_or_none(const json& j) {
  return j.is_null() ? std::nullopt : std::optional<double>(j.get<double>());
}

// JSON has no NaN: of a run that diverged, numbers are null.
double number_or_nan(const json& j) { return number_or_none(j).value_or(NAN); }

std::vector<std::vector<float>> weights_of(const json& rows) {
  std::vector<std::vector<float>> out;
  for (const json& row : rows) {
    out.emplace_back();
    for (const json& weight : row) out.back().push_back(static_cast<float>(number_or_nan(weight)));
  }
  return out;
}

// A column of the table: its heading, and the text of a row.
struct Column {
  std::string name;
  std::function<std::string(const RaceRow&)> text;
};

std::string text_of(const std::optional<Spread>& s, double factor, int digits) {
  return translator::text_of(s.value_or(Spread()), factor, digits);
}

std::vector<Column> columns() {
  return {{"attention", [](const RaceRow& r) { return r.attention; }},
          {"runs", [](const RaceRow& r) { return std::to_string(r.runs); }},
          {"parameters", [](const RaceRow& r) { return format_count(static_cast<double>(r.parameters)); }},
          {"ktokens/s", [](const RaceRow& r) { return text_of(r.tokens_per_second, 1e-3, 1); }},
          {"loss", [](const RaceRow& r) { return text_of(r.loss, 1, 4); }},
          {"exact %", [](const RaceRow& r) { return text_of(r.exact_match, 100, 1); }},
          {"BLEU", [](const RaceRow& r) { return text_of(r.bleu, 1, 1); }},
          {"AER %", [](const RaceRow& r) { return text_of(r.aer, 100, 1); }},
          {"entropy", [](const RaceRow& r) { return text_of(r.entropy, 1, 2); }}};
}

// White to dark blue.
std::string colour(float weight) {
  double w = std::clamp(std::isfinite(weight) ? static_cast<double>(weight) : 0.0, 0.0, 1.0);
  auto mix = [w](double from, double to) { return static_cast<int>(std::lround(from + w * (to - from))); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(247, 8), mix(251, 48), mix(255, 107));
}

// Letters are drawn 11 high; about 6.2 wide each.
constexpr double kCell = 18, kLetter = 6.2, kGap = 24;

double longest(const std::vector<std::string>& words) { return utf8::widest(words) * kLetter; }

struct Size {
  double left, top, width, height;  // of the words' margins, and of the whole
};

Size size_of(const WordPicture& m) {
  double left = longest(m.target) + 8, top = longest(m.source) * 0.75 + 34;
  return {left, top, left + kCell * static_cast<double>(m.source.size()) + 0.6 * longest(m.source),
          top + kCell * static_cast<double>(m.target.size())};
}

std::string one_map(const RaceRow& row, double x, double y) {
  const WordPicture& m = row.map;
  Size s = size_of(m);
  std::string out = fmt::format("<g transform=\"translate({:.0f} {:.0f})\">\n", x, y);
  out += fmt::format("<text x=\"0\" y=\"14\" class=\"name\">{}</text>\n", utf8::markup(row.attention));
  for (size_t i = 0; i < m.source.size(); ++i)
    out += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-45)\">{}</text>\n",
                       s.left + kCell * (static_cast<double>(i) + 0.5), s.top - 6, utf8::markup(m.source[i]));
  for (size_t t = 0; t < m.target.size(); ++t) {
    double top = s.top + kCell * static_cast<double>(t);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", s.left - 5,
                       top + 13, utf8::markup(m.target[t]));
    for (size_t i = 0; i < m.source.size(); ++i)
      out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"{}\"/>\n",
                         s.left + kCell * static_cast<double>(i), top, kCell - 1, kCell - 1,
                         colour(m.weights[t][i]));
  }
  return out + "</g>\n";
}

}  // namespace

std::string to_json(const RaceRun& r, const std::string& settings) {
  return json_text::dump(json{{"settings", settings},
                              {"attention", r.attention},
                              {"seed", r.seed},
                              {"parameters", r.parameters},
                              {"tokens_per_second", r.tokens_per_second},
                              {"epochs", r.epochs},
                              {"loss", r.loss},
                              {"exact_match", r.exact_match},
                              {"bleu", r.bleu},
                              {"aer", optional_number(r.aer)},
                              {"entropy", optional_number(r.entropy)},
                              {"source", r.map.source},
                              {"target", r.map.target},
                              {"weights", r.map.weights}});
}

std::optional<RaceRun> race_run_from_json(const std::string& text, const std::string& settings) {
  try {
    json j = json_text::parse(text);
    if (j.at("settings") != settings) return std::nullopt;
    RaceRun run{j.at("attention"),
                j.at("seed"),
                j.at("parameters"),
                j.at("tokens_per_second"),
                j.at("epochs"),
                number_or_nan(j.at("loss")),
                j.at("exact_match"),
                j.at("bleu"),
                number_or_none(j.at("aer")),
                number_or_none(j.at("entropy")),
                {j.at("source"), j.at("target"), weights_of(j.at("weights"))}};
    for (const std::vector<float>& row : run.map.weights)
      if (run.map.weights.size() != run.map.target.size() || row.size() != run.map.source.size())
        return std::nullopt;
    return run;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::vector<RaceRow> race_rows(const std::vector<RaceRun>& runs) {
  std::vector<std::string> names;
  for (const RaceRun& r : runs)
    if (std::find(names.begin(), names.end(), r.attention) == names.end()) names.push_back(r.attention);
  std::vector<RaceRow> rows;
  for (const std::string& name : names) {
    std::vector<const RaceRun*> own;
    for (const RaceRun& r : runs)
      if (r.attention == name) own.push_back(&r);
    auto spread = [&](auto RaceRun::*measure) -> std::optional<Spread> {
      std::vector<double> values;
      for (const RaceRun* r : own)
        if (const std::optional<double> value = r->*measure) values.push_back(*value);
      return values.empty() ? std::nullopt : std::optional(spread_of(values));
    };
    rows.push_back({name, own.back()->parameters, static_cast<int64_t>(own.size()),
                    spread(&RaceRun::tokens_per_second), spread(&RaceRun::loss),
                    spread(&RaceRun::exact_match), spread(&RaceRun::bleu), spread(&RaceRun::aer),
                    spread(&RaceRun::entropy), own[0]->map});
  }
  return rows;
}

std::string race_table(const std::vector<RaceRow>& rows, int screen) {
  const std::vector<Column> all = columns();
  std::vector<int> width;
  for (const Column& c : all) {
    int w = utf8::display_width(c.name);
    for (const RaceRow& r : rows) w = std::max(w, utf8::display_width(c.text(r)));
    width.push_back(w);
  }
  std::string out;
  for (size_t begin = 1, end = 1; end < all.size(); begin = end) {
    for (int used = width[0]; end < all.size() && (end == begin || used + 2 + width[end] <= screen); ++end)
      used += 2 + width[end];
    auto line = [&](auto&& text) {
      out += utf8::pad_right(text(all[0]), width[0]);
      for (size_t i = begin; i < end; ++i) out += "  " + utf8::pad_left(text(all[i]), width[i]);
      out += "\n";
    };
    if (begin > 1) out += "\n";
    line([](const Column& c) { return c.name; });
    for (const RaceRow& r : rows) line([&](const Column& c) { return c.text(r); });
  }
  return out;
}

std::string race_table_markdown(const std::vector<RaceRow>& rows) {
  auto line = [](auto&& text) {
    std::string out = "|";
    for (const Column& c : columns()) out += " " + text(c) + " |";
    return out + "\n";
  };
  std::string out = line([](const Column& c) { return c.name; });
  out += line([](const Column& c) { return c.name == "attention" ? "---"s : "---:"s; });
  for (const RaceRow& r : rows) out += line([&](const Column& c) { return c.text(r); });
  return out;
}

std::vector<std::string> race_findings(const std::vector<RaceRow>& rows) {
  struct Measure {
    const char* name;
    double sign;  // +1: less is better
    std::optional<Spread> RaceRow::*of;
  };
  const Measure measures[] = {{"loss", 1, &RaceRow::loss},
                              {"exact match", -1, &RaceRow::exact_match},
                              {"BLEU", -1, &RaceRow::bleu},
                              {"AER", 1, &RaceRow::aer}};
  std::vector<std::string> out;
  for (const Measure& m : measures) {
    const RaceRow* best = nullptr;
    for (const RaceRow& r : rows) {
      const std::optional<Spread>& s = r.*m.of;
      if (s && s->count > 1 && (!best || m.sign * s->mean < m.sign * (best->*m.of)->mean)) best = &r;
    }
    if (!best) continue;
    std::vector<std::string> behind, open;
    const Spread top = *(best->*m.of);
    bool equal = true;
    for (const RaceRow& r : rows) {
      const std::optional<Spread>& s = r.*m.of;
      equal = equal && (!s || s->mean == top.mean);
      if (&r == best || !s || s->count < 2) continue;
      (clearly_apart(*s, top) ? behind : open).push_back(r.attention);
    }
    if (equal) {
      out.push_back(fmt::format("{}: the same for all", m.name));
      continue;
    }
    std::string text = fmt::format("{}: {} is best", m.name, best->attention);
    if (!behind.empty())
      text += fmt::format("; behind it beyond the spread of the seeds: {}", fmt::join(behind, ", "));
    if (!open.empty()) text += fmt::format("; not told apart from it: {}", fmt::join(open, ", "));
    out.push_back(text);
  }
  return out;
}

std::string race_maps(const std::vector<RaceRow>& rows, int width) {
  std::string out;
  std::vector<std::string> beside;  // the line of maps that is being filled, all of the same width
  auto flush = [&] {
    for (const std::string& line : beside) out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (!beside.empty()) out += "\n";
    beside.clear();
  };
  for (const RaceRow& r : rows) {
    if (r.map.weights.empty()) continue;
    std::vector<std::string> block =
        split(r.attention + "\n" +
                  draw_heat_map(r.map, {.width = width,
                                        .header = HeatMapOptions::Header::vertical,
                                        .name_largest = false,
                                        .legend = false}),
              '\n');
    const int w = utf8::widest(block);
    if (!beside.empty() && utf8::display_width(beside[0]) + 3 + w > width) flush();
    const std::string gap = beside.empty() ? "" : "   ",
                      blank = beside.empty() ? "" : utf8::pad_right("", utf8::display_width(beside[0]));
    beside.resize(std::max(beside.size(), block.size()), blank);
    block.resize(beside.size());
    for (size_t i = 0; i < block.size(); ++i) beside[i] += gap + utf8::pad_right(block[i], w);
  }
  flush();
  return out;
}

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
