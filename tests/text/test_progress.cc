#include <common/progress.h>
#include <common/utf8.h>

#include <cmath>

#include "../quick_doctest.h"

using namespace translator;

namespace {

// A progress bar with a clock and a screen of its own.
struct Stage {
  double time = 0;
  std::string written;

  ProgressOptions options(bool terminal) {
    return {.unit = "tokens/s",
            .style = {.cursor = terminal, .width = 80},
            .write = [this](std::string_view text) { written += text; },
            .clock = [this] { return time; }};
  }
};

}  // namespace

TEST_CASE("progress: one line") {
  const ProgressState state{.label = "epoch 2/10",
                            .done = 50,
                            .total = 100,
                            .elapsed = 41,
                            .rate = 12345,
                            .unit = "tokens/s",
                            .detail = "loss 2.31"};
  CHECK(render_progress(state, 100, Color::none) ==
        "epoch 2/10 ━━━━━━━━━━━━━━━───────────────  50%  12.3k tokens/s  0:41 left  loss 2.31");
  CHECK(render_progress(state, 70, Color::none) ==
        "epoch 2/10 ━━━━━━━━────────  50%  12.3k tokens/s  0:41 left  loss 2.31");
  CHECK(render_progress(state, 60, Color::none) ==
        "epoch 2/10 ━━━───  50%  12.3k tokens/s  0:41 left  loss 2.31");
  CHECK(render_progress(state, 56, Color::none) ==
        "epoch 2/10 ━━━━━━━━━─────────  50%  0:41 left  loss 2.31");
  CHECK(render_progress(state, 40, Color::none) == "epoch 2/10 ━━━───  50%  0:41 left  loss…");
  for (int width = 1; width < 120; ++width)
    CHECK(utf8::display_width(render_progress(state, width, Color::none)) <= width);
  CHECK(render_progress(state, 100, Color::truecolor).find("\x1b[38;2;66;134;203m") != std::string::npos);

  CHECK(render_progress({.label = "reading", .done = 1200, .elapsed = 75}, 80, Color::none) ==
        "reading 1200  1:15");
  CHECK(render_progress({.label = "reading", .done = 1, .elapsed = 3725}, 80, Color::none) ==
        "reading 1  1:02:05");
  // What was done before counts as done, and tells nothing of the pace.
  CHECK(render_progress({.label = "x", .done = 50, .total = 100, .begin = 40, .elapsed = 10}, 80, Color::none)
            .find(" 50%  0:50 left") != std::string::npos);
  CHECK(render_progress({.label = "x", .done = 0, .total = 4}, 80, Color::none) ==
        "x ──────────────────────────────   0%");
  CHECK(render_progress({.label = "x", .done = 9, .total = 4, .elapsed = 1}, 80, Color::none)
            .find("100%  0:00 left") != std::string::npos);
}

TEST_CASE("progress: on a terminal the line is drawn in place") {
  Stage stage;
  {
    Progress progress("train", 10, stage.options(true));
    progress.update(1);
    CHECK(stage.written.starts_with("\rtrain "));
    CHECK(stage.written.ends_with("\x1b[K"));
    const size_t before = stage.written.size();
    stage.time = 0.05;
    progress.update(2);  // too soon
    CHECK(stage.written.size() == before);
    stage.time = 0.2;
    progress.update(3, "loss 1", 600);
    CHECK(stage.written.find(" 3.00k tokens/s") != std::string::npos);
    progress.print("sample");
    CHECK(stage.written.find("\r\x1b[Ksample\n\rtrain") != std::string::npos);
  }
  CHECK(stage.written.ends_with("\r\x1b[K"));  // the bar does not outlive the object
}

TEST_CASE("progress: elsewhere a line every ten seconds") {
  Stage stage;
  Progress progress("train", 100, stage.options(false));
  for (int i = 1; i <= 25; ++i) {
    stage.time = i;
    progress.update(i);
  }
  CHECK(std::count(stage.written.begin(), stage.written.end(), '\n') == 2);
  CHECK(stage.written.find('\x1b') == std::string::npos);
  CHECK(stage.written.find('\r') == std::string::npos);
  CHECK(stage.written.starts_with("train ━━━"));
  progress.finish("done");
  CHECK(stage.written.ends_with("\ndone\n"));
  const size_t before = stage.written.size();
  stage.time = 100;
  progress.update(99);
  CHECK(stage.written.size() == before);
}

TEST_CASE("progress: quiet") {
  Stage stage;
  ProgressOptions options = stage.options(true);
  options.quiet = true;
  Progress progress("train", 10, options);
  progress.update(1);
  progress.print("x");
  progress.finish("y");
  CHECK(stage.written.empty());
}

TEST_CASE("progress: durations and counts") {
  CHECK(format_duration(3.21) == "3.2 s");
  CHECK(format_duration(59.97) == "1 min 00 s");
  CHECK(format_duration(245) == "4 min 05 s");
  CHECK(format_duration(4330) == "1 h 12 min");
  CHECK(format_duration(NAN) == "?");
  CHECK(format_duration(-1) == "?");
  CHECK(format_count(0) == "0");
  CHECK(format_count(7.25) == "7.2");
  CHECK(format_count(950) == "950");
  CHECK(format_count(999.7) == "1.00k");
  CHECK(format_count(12345) == "12.3k");
  CHECK(format_count(1240000) == "1.24M");
  CHECK(format_count(INFINITY) == "?");
}

TEST_CASE("sparkline") {
  CHECK(sparkline({0, 1, 2, 3, 4, 5, 6, 7}) == "▁▂▃▄▅▆▇█");
  CHECK(sparkline({5, 5, 5}) == "▁▁▁");
  CHECK(sparkline({}) == "");
  CHECK(sparkline({1, NAN, 2, INFINITY}) == "▁ █ ");
  CHECK(sparkline({0, 0, 7, 7}, 2) == "▁█");
  CHECK(sparkline({0, 7}, 10) == "▁█");
  CHECK(sparkline({NAN, NAN}) == "  ");
  CHECK(sparkline({1e308, -1e308, 0}) == "█▁▅");
  CHECK(sparkline({1e308, 1e308, -1e308, -1e308}, 2) == "█▁");
}

TEST_CASE("progress: a delay keeps short work silent") {
  for (bool terminal : {true, false}) {
    CAPTURE(terminal);
    Stage stage;
    ProgressOptions options = stage.options(terminal);
    options.delay_seconds = 2;
    Progress progress("loss", 10, options);
    stage.time = 1.9;
    progress.update(4);
    CHECK(stage.written == "");
    stage.time = 2.1;
    progress.update(5);
    CHECK(stage.written.find("loss ") != std::string::npos);
    CHECK(stage.written.find(" 50%") != std::string::npos);
    std::string before = stage.written;
    stage.time = 2.15;
    progress.update(6);
    CHECK(stage.written == before);
    stage.time = 12.2;
    progress.update(7);
    CHECK(stage.written.find(" 70%") != std::string::npos);
  }
}

TEST_CASE("progress: a panel stays above the bar, the next one takes its place, text goes above it") {
  Stage stage;
  {
    Progress progress("train", 10, stage.options(true));
    progress.update(1);
    stage.written.clear();
    progress.set_panel("one\ntwo");
    CHECK(stage.written.starts_with("\r\x1b[Kone\ntwo\n\rtrain "));
    stage.written.clear();
    progress.set_panel("three\n");
    CHECK(stage.written.starts_with("\r\x1b[K\x1b[2A\x1b[Jthree\n\rtrain "));
    stage.written.clear();
    progress.print("news");
    CHECK(stage.written.starts_with("\r\x1b[K\x1b[1A\x1b[Jnews\nthree\n\rtrain "));
    stage.written.clear();
    progress.finish("over");
    CHECK(stage.written == "\r\x1b[Kover\n");
  }
  Stage file;
  Progress plain("train", 10, file.options(false));
  plain.set_panel("one\n");
  plain.print("news");
  CHECK(file.written == "news\n");
}
