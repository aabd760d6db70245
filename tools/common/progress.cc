#include <common/progress.h>

#include <common/utf8.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace translator {
namespace {

constexpr int kLongestBar = 30;
constexpr int kShortestBar = 6;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// `0:41`, `12:05`, `1:02:05`.
std::string clock_time(double seconds) {
  const auto s = static_cast<int64_t>(std::llround(std::max(seconds, 0.0)));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

// `columns` wide, with half steps.
std::string bar(double share, int columns, Color color) {
  const auto halves = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * 2 * columns));
  std::string full;
  std::string rest;
  for (int i = 0; i < halves / 2; ++i) full += "━";
  if (halves % 2 == 1) full += "╸";
  for (int i = (halves + 1) / 2; i < columns; ++i) rest += color == Color::none ? "─" : "━";
  if (color == Color::none) return full + rest;
  // A blue and a grey in the middle of the scale: both stand out from black as from white.
  const Shade blue{66, 134, 203, 68};
  const Shade grey{110, 118, 130, 243};
  return set_foreground(blue, color) + full + reset(color) + set_foreground(grey, color) + rest +
         reset(color);
}

}  // namespace

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto s = static_cast<int64_t>(std::llround(seconds));
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
}

std::string format_count(double value) {
  if (!std::isfinite(value)) return "?";
  constexpr std::array<const char*, 5> kLetters = {"", "k", "M", "G", "T"};
  size_t power = 0;
  while (std::abs(value) >= 999.5 && power + 1 < kLetters.size()) {
    value /= 1000;
    ++power;
  }
  if (power == 0)
    return fmt::format("{:.{}f}", value, std::abs(value) < 9.95 && value != std::floor(value) ? 1 : 0);
  const int decimals = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, decimals, kLetters[power]);
}

std::string sparkline(const std::vector<double>& values, int width) {
  const size_t n = values.size();
  const size_t bars = width > 0 ? std::min(n, static_cast<size_t>(width)) : n;
  std::vector<double> heights;
  double low = INFINITY;
  double high = -INFINITY;
  for (size_t i = 0; i < bars; ++i) {
    double sum = 0;
    int64_t count = 0;
    for (size_t j = n * i / bars; j < n * (i + 1) / bars; ++j) {
      if (!std::isfinite(values[j])) continue;
      sum += values[j] * 0x1p-64;  // shares stay the same, and no sum or difference becomes infinite
      ++count;
    }
    heights.push_back(count > 0 ? sum / static_cast<double>(count) : std::nan(""));
    low = std::fmin(low, heights.back());  // of a number and NaN the number
    high = std::fmax(high, heights.back());
  }
  constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string out;
  for (double h : heights) {
    if (std::isnan(h)) {
      out += ' ';
      continue;
    }
    const double share = high > low ? (h - low) / (high - low) : 0;
    out += kBars[static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * 7))];
  }
  return out;
}

std::string render_progress(const ProgressState& state, int width, Color color) {
  const bool known = state.total > 0;
  const double share =
      known ? std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0) : 0;
  std::string facts =
      known             ? fmt::format("{:3}%", static_cast<int>(share * 100))
      : state.done == 0 ? ""
                        : fmt::format("{}", state.done);
  const std::string rate =
      state.unit.empty() ? "" : fmt::format("  {:>5} {}", format_count(state.rate), state.unit);
  std::string times;
  if (known && state.done > state.begin) {
    const double pace = state.elapsed / static_cast<double>(state.done - state.begin);
    times = fmt::format(
        "  {} left", clock_time(pace * static_cast<double>(std::max<int64_t>(0, state.total - state.done))));
  } else if (!known) {
    times = fmt::format("  {}", clock_time(state.elapsed));
  }
  const std::string label = utf8::printable(state.label);
  const std::string detail = utf8::printable(state.detail);
  // Where not all has room the rate goes first: what is learned says more.
  const int all = utf8::display_width(label + " " + facts + rate + times) + 2 + utf8::display_width(detail) +
                  (known ? kShortestBar + 1 : 0);
  facts += (detail.empty() || all <= width ? rate : "") + times;
  const int fixed = utf8::display_width(label) + 1 + utf8::display_width(facts);
  const int wish = fixed + (detail.empty() ? 0 : 2 + utf8::display_width(detail)) + 1;
  int columns = known ? std::clamp(width - wish, kShortestBar, kLongestBar) : 0;
  if (fixed + 1 + columns > width) columns = 0;
  const int rest = width - fixed - (columns > 0 ? columns + 1 : 0);
  std::string tail;
  if (!detail.empty() && rest > 4) tail = fmt::format("  {}", utf8::fit(detail, rest - 2));
  if (columns == 0) return utf8::fit(label + " " + facts + tail, width);
  return label + " " + bar(share, columns, color) + " " + facts + tail;
}

Progress::Progress(std::string label, int64_t total, ProgressOptions options) : options_(std::move(options)) {
  if (!options_.write) options_.write = to_stderr;
  if (!options_.clock) options_.clock = steady_seconds;
  state_ = {.label = std::move(label), .total = total, .unit = options_.unit};
  start_ = options_.clock();
  last_shown_ = start_;
}

Progress::~Progress() {
  try {
    if (!finished_) clear();
  } catch (...) {  // a writer that throws must not end the program from here
  }
}

void Progress::update(int64_t done, std::string detail, double counted) {
  if (options_.quiet || finished_) return;
  const double time = options_.clock();
  state_.done = done;
  state_.detail = std::move(detail);
  state_.elapsed = time - start_;
  const double units = counted < 0 ? static_cast<double>(done) : counted;
  state_.rate = state_.elapsed > 0 ? units / state_.elapsed : 0;
  const bool terminal = options_.style.cursor;
  const double wait = terminal ? 0.1 : 10;  // seconds between two drawings, or two lines
  if (state_.elapsed < options_.delay_seconds) return;
  // The bar comes at once; a plain line when it is due, or once the delay is over.
  const bool first = !shown_ && (terminal || (options_.delay_seconds > 0 && last_shown_ == start_));
  if (!first && time - last_shown_ < wait) return;
  last_shown_ = time;
  draw();
}

void Progress::draw() {
  // The last column stays free: a character there makes some terminals wrap.
  const int width = std::max(options_.style.width - 1, 10);
  if (options_.style.cursor) {
    options_.write(fmt::format("\r{}\x1b[K", render_progress(state_, width, options_.style.color)));
    shown_ = true;
  } else {
    options_.write(fmt::format("{}\n", render_progress(state_, 200, Color::none)));
  }
}

void Progress::clear() {
  if (shown_) options_.write("\r\x1b[K");
  shown_ = false;
}

void Progress::clear_panel() {
  if (panel_.empty()) return;
  const auto lines = std::count(panel_.begin(), panel_.end(), '\n');
  options_.write(fmt::format("\x1b[{}A\x1b[J", lines));
}

void Progress::set_panel(std::string text) {
  if (options_.quiet || finished_ || !options_.style.cursor) return;
  const bool again = shown_;
  clear();
  clear_panel();
  panel_ = std::move(text);
  if (!panel_.empty() && panel_.back() != '\n') panel_ += '\n';
  if (!panel_.empty()) options_.write(panel_);
  if (again) draw();
}

void Progress::print(std::string_view text) {
  if (options_.quiet) return;
  const bool again = shown_;
  clear();
  if (!finished_) clear_panel();
  options_.write(fmt::format("{}\n", text));
  if (!panel_.empty() && !finished_) options_.write(panel_);
  if (again && !finished_) draw();
}

void Progress::finish(std::string_view text) {
  if (!finished_) clear();
  finished_ = true;
  if (!options_.quiet && !text.empty()) options_.write(fmt::format("{}\n", text));
}

}  // namespace translator
