// What a terminal shows while a model is trained.

#include <translator/training/live_view.h>
#include <common/utf8.h>

#include <sstream>

#include "../quick_doctest.h"

using namespace translator;

namespace {

const std::vector<Validation> kThree = [] {
  std::vector<Validation> out(3);
  const double train[] = {5, 3, 2}, valid[] = {4.5, 3.5, 2.25}, bleu[] = {0, 10, 40}, exact[] = {0, 0, 0.125};
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].train_loss = train[i];
    Evaluation& e = out[i].evaluation;
    e.sentences = 8;
    e.nll = valid[i];
    e.bleu.score = bleu[i];
    e.exact_match = exact[i];
  }
  return out;
}();

std::string view(const TerminalStyle& style) {
  RunLog::Details newest;
  newest.probe = ProbeResult{{{"the", "cat", "</s>"},
                              {"le", "chat", "</s>"},
                              {{0.9f, 0.1f, 0}, {0.2f, 0.75f, 0.05f}, {0, 0, 1}},
                              true},
                             "le chat"};
  newest.samples = {{"the cat", "", "le chat"}, {"a dog", "", "un chien"}};
  return draw_live_view(kThree, newest, style);
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

}  // namespace

TEST_CASE("the live view: sparklines, the probe over its map, the other samples") {
  CHECK(view({.is_terminal = true, .width = 80, .height = 40}) ==
        "          train loss  █▃▁  5.000 -> 2.000\n"
        "          valid loss  █▅▁  4.500 -> 2.250\n"
        "          BLEU        ▁▃█  0.0 -> 40.0\n"
        "          exact match ▁▁█  0.0 % -> 12.5 %\n"
        "          the cat\n"
        "          -> le chat\n"
        "                 ╭ the\n"
        "                 │    ╭ cat\n"
        "                 │    │    ╭ </s>\n"
        "            le  .90* .10   ·    .90 the\n"
        "          chat  .20  .75* .05   .75 cat\n"
        "          </s>   ·    ·   1.0*  1.0 </s>\n"
        "          a dog\n"
        "          -> un chien\n");
}

TEST_CASE("no line is wider than the terminal, and there are never more than it holds") {
  for (int width : {20, 38, 60, 100})
    for (int height : {5, 12, 24, 0}) {
      std::string text = view({.is_terminal = true, .width = width, .height = height});
      CAPTURE(width);
      CAPTURE(height);
      for (const std::string& line : lines(text)) CHECK_MESSAGE(utf8::display_width(line) < width, line);
      if (height > 0) CHECK(static_cast<int>(lines(text).size()) <= height - 3);
    }
  std::string low = view({.is_terminal = true, .width = 80, .height = 12});
  CHECK(low.find("(no room for the heat map)") != std::string::npos);
  CHECK(low.find("╭") == std::string::npos);
}

TEST_CASE("colours only where the terminal has them; a first validation; no attention, no probe") {
  CHECK(view({.is_terminal = true}).find('\x1b') == std::string::npos);
  CHECK(view({.is_terminal = true, .color = Color::truecolor}).find("\x1b[48;2;") != std::string::npos);
  CHECK(draw_live_view({{.train_loss = 5}}, {}, {.is_terminal = true}) == "          train loss  ▁  5.000\n");
}

TEST_CASE("what sentences say to a terminal is not done") {
  RunLog::Details newest;
  newest.samples = {{"the \x1B[31mcat", "", "le \x1B[31mchat"}};
  CHECK(draw_live_view({{.train_loss = 5}}, newest, {.is_terminal = true}) ==
        "          train loss  ▁  5.000\n"
        "          the \uFFFD[31mcat\n"
        "          -> le \uFFFD[31mchat\n");
}

TEST_CASE("the time that real text needs, from the speed; nothing of what is over soon or unknown") {
  CHECK(
      time_needed(20, 0.5, 12, 9876, "", 200) ==
      "          Real text needs about 8 minutes on this machine: 12 passes over these pairs, at 9.88k target "
      "tokens a second. Scores are low before.");
  CHECK(lines(time_needed(20, 0.5, 12, 9876, "It could be less.", 50)) ==
        std::vector<std::string>{"Real text needs about 8 minutes on this machine:",
                                 "12 passes over these pairs, at 9.88k target tokens",
                                 "a second. Scores are low before. It could be less."});
  CHECK(time_needed(20, 2.5, 12, 9876, "", 200).empty());
  CHECK(time_needed(20, 0, 12, 9876, "", 200).empty());
  CHECK(time_needed(0, 0, 12, 0, "", 200).empty());
}
