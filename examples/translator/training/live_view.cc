#include <translator/training/live_view.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <common/heat_map.h>
#include <common/progress.h>
#include <common/utf8.h>

namespace translator {
namespace {

// What stands before the lines, as before those of a validation, and the columns that are left.
std::string margin_of(const TerminalStyle& style) { return style.width > 60 ? std::string(10, ' ') : ""; }
int room_of(const TerminalStyle& style) {
  return style.width - 1 - static_cast<int>(margin_of(style).size());
}

constexpr int kLongest = 30;  // bars of a sparkline

std::string quiet(const std::string& text, Color color) { return set_quiet(color) + text + reset(color); }

// `loss        █▅▂▁  5.61 -> 0.41`
std::string curve(const char* name, const std::vector<double>& values, const char* number,
                  const TerminalStyle& style) {
  std::string figures = fmt::format(fmt::runtime(number), values.front());
  if (values.size() > 1) figures += " -> " + fmt::format(fmt::runtime(number), values.back());
  int room = room_of(style) - 14 - static_cast<int>(figures.size());
  if (room < 4)
    return utf8::fit(fmt::format("{} {}", name, fmt::format(fmt::runtime(number), values.back())),
                     style.width - 1) +
           "\n";
  std::string bars = sparkline(values, std::min(room, kLongest));
  const Shade blue{66, 134, 203, 68};
  return margin_of(style) + quiet(fmt::format("{:<12}", name), style.color) +
         set_foreground(blue, style.color) + bars + reset(style.color) + "  " + figures + "\n";
}

int64_t count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// `text` is of whole lines.
std::string indented(const std::string& text, const std::string& margin) {
  std::string out;
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = text.find('\n', at) + 1;
    out += (text[at] == '\n' ? "" : margin) + text.substr(at, end - at);
  }
  return out;
}

std::string map_of(const ProbeResult& p, const TerminalStyle& style) {
  HeatMapOptions options = heat_map_options(style);
  options.width = room_of(style);
  options.legend = false;
  options.cursor = false;  // positions within a line are counted from the margin
  return indented(draw_heat_map(p, options), margin_of(style));
}

}  // namespace

std::string time_needed(double seconds, double epochs, double passes, double tokens_per_second,
                        const std::string& hint, int width) {
  const double needed = seconds / epochs * passes;
  if (!(needed >= 120) || !std::isfinite(needed)) return "";
  std::string out = utf8::wrapped(
      fmt::format("Real text needs about {:.0f} minutes on this machine: {:.0f} passes over these "
                  "pairs, at {} target tokens a second. Scores are low before.{}{}",
                  needed / 60, passes, format_count(tokens_per_second), hint.empty() ? "" : " ", hint),
      width, width > 60 ? 10 : 0);
  out.pop_back();  // the last line's end
  return out;
}

std::string draw_live_view(const std::vector<Validation>& validations, const RunLog::Details& newest,
                           const TerminalStyle& style) {
  std::string head;
  auto add_curve = [&](const char* name, const char* number, auto&& value) {
    std::vector<double> values;
    for (const Validation& v : validations) values.push_back(value(v));
    head += curve(name, values, number, style);
  };
  add_curve("train loss", "{:.3f}", [](const Validation& v) { return v.train_loss; });
  if (validations.back().evaluation.sentences > 0) {
    add_curve("valid loss", "{:.3f}", [](const Validation& v) { return v.evaluation.nll; });
    add_curve("BLEU", "{:.1f}", [](const Validation& v) { return v.evaluation.bleu.score; });
    add_curve("exact match", "{:.1f} %", [](const Validation& v) { return 100 * v.evaluation.exact_match; });
  }
  const std::string margin = margin_of(style);
  int room = std::max(room_of(style), 4);
  auto sample = [&](const RunLog::Sample& s) {
    return margin + quiet(utf8::fit(utf8::printable(s.source), room), style.color) + "\n" + margin +
           utf8::fit("-> " + utf8::printable(s.output), room) + "\n";
  };
  std::string samples, map;
  for (size_t i = 1; i < newest.samples.size(); ++i) samples += sample(newest.samples[i]);
  if (!newest.samples.empty()) head += sample(newest.samples[0]);
  if (newest.probe) map = map_of(*newest.probe, style);
  // The validation's line stands above, the progress bar below; what the window has no room for goes.
  int64_t most = style.height > 0 ? style.height - 3 : 1000;
  std::string out;
  auto add = [&](const std::string& part) {
    bool fits = count_lines(out) + count_lines(part) <= most;
    if (fits) out += part;
    return fits;
  };
  add(head);
  if (!add(map)) add(margin + quiet(utf8::fit("(no room for the heat map)", room), style.color) + "\n");
  add(samples);
  return out;
}

}  // namespace translator
