#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <common/terminal.h>

namespace translator {

/// `3.2 s`, `4 min 05 s`, `1 h 12 min`; `?` for what is not a number or is negative.
std::string format_duration(double seconds);

/// Three digits and a thousands letter: `12.3k`, `1.24M`, `950`.
std::string format_count(double value);

/// The values as bars of eight heights, ▁ the least and █ the largest; equal values all ▁, NaN and infinities
/// a blank. More values than `width` are averaged into `width` bars; 0 is one bar a value.
std::string sparkline(const std::vector<double>& values, int width = 0);

/// What a progress bar shows.
struct ProgressState {
  /// `epoch 2/10`
  std::string label = {};
  int64_t done = 0;
  /// 0 when nobody knows: no bar, no percentage, no time left
  int64_t total = 0;
  /// what was done when the clock started: an earlier run's part
  int64_t begin = 0;
  /// seconds since the start
  double elapsed = 0;
  /// units a second
  double rate = 0;
  /// `tokens/s`; an empty one hides the rate
  std::string unit = {};
  /// `loss 2.31`
  std::string detail = {};
};

/// One line of at most `width` columns, without a line end:
///
///     epoch 2/10 ━━━━━━━━━━╸─────────  52%  12.3k tokens/s  0:41 left  loss 2.31
///
/// What does not fit goes in this order: the bar shrinks, the detail is cut, the bar goes.
std::string render_progress(const ProgressState& state, int width, Color color);

struct ProgressOptions {
  /// of the rate
  std::string unit = {};
  /// nothing is shown before: what is over soon needs no bar
  double delay_seconds = 0;
  /// show nothing at all
  bool quiet = false;
  TerminalStyle style = terminal_style(2);
  /// where to; empty is standard error
  std::function<void(std::string_view)> write = {};
  /// seconds; empty is the steady clock
  std::function<double()> clock = {};
};

/// A single-line progress bar. On a terminal the line is drawn anew in its place; elsewhere (a file, a pipe)
/// a plain line is written every ten seconds. Not safe to be called from several threads at once.
class Progress {
 public:
  /// `total` units of work to be done, 0 when not known.
  Progress(std::string label, int64_t total, ProgressOptions options = {});

  /// Clears the bar if finish() was not called (an exception passed through).
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` units are done now. `counted` is what the rate counts (tokens, say, while done counts batches);
  /// negative for `done` itself.
  void update(int64_t done, std::string detail = {}, double counted = -1);

  /// So much was done before the clock started; the time left is reckoned from the rest.
  void start_at(int64_t done) { state_.begin = done; }

  /// Writes text above the bar: samples, validation results. A line feed is added.
  void print(std::string_view text);

  /// Text of whole lines that stays just above the bar, on a terminal only: the next one takes its place,
  /// `print` goes above it, and finish leaves it there. Its lines must not be wider than the terminal.
  void set_panel(std::string text);

  /// A new label, say for the next epoch.
  void set_label(std::string label) { state_.label = std::move(label); }

  /// Takes the bar away; writes `text` as a last line if there is one.
  void finish(std::string_view text = {});

 private:
  void draw();
  void clear();
  void clear_panel();

  ProgressOptions options_;
  ProgressState state_;
  double start_ = 0;
  double last_shown_ = 0;
  // a bar stands on the current line
  bool shown_ = false;
  std::string panel_;
  bool finished_ = false;
};

}  // namespace translator
