#include <common/heat_map.h>
#include <common/utf8.h>

#if __has_include(<pty.h>)
#include <pty.h>
#include <unistd.h>
#endif

#include <cmath>
#include <map>
#include <random>
#include <stdexcept>

#include "../quick_doctest.h"

using namespace translator;
using Words = std::vector<std::string>;
using Header = HeatMapOptions::Header;

namespace {

const Words kSource = {"he", "doesn't", "like", "apples", "."};
const Words kTarget = {"il", "n'", "aime", "pas", "les", "pommes", "."};
const std::vector<float> kWeights = {.97f, .01f, .01f, .01f, .00f,  //
                                     .04f, .89f, .05f, .01f, .01f,  //
                                     .01f, .10f, .86f, .02f, .01f,  //
                                     .00f, .93f, .03f, .03f, .01f,  //
                                     .02f, .08f, .11f, .74f, .05f,  //
                                     .00f, .00f, .02f, .97f, .01f,  //
                                     .00f, .00f, .00f, .00f, 1.0f};
const Weights kMap{7, 5, kWeights};

Words lines_of(const std::string& text) {
  Words out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    REQUIRE(end != std::string::npos);
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// The text a terminal would show, without the escape sequences.
std::string stripped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm' && text[i] != 'G') ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<float> random_weights(std::mt19937& random, int64_t rows, int64_t columns) {
  std::vector<float> out(static_cast<size_t>(rows * columns));
  for (float& w : out) w = static_cast<float>(random() % 1000) / 999.0f;
  return out;
}

}  // namespace

TEST_CASE("heat map: without colours a table of numbers") {
  CHECK(draw_heat_map(kMap, kSource, kTarget) ==
        "         ╭ he\n"
        "         │    ╭ doesn't\n"
        "         │    │    ╭ like\n"
        "         │    │    │    ╭ apples\n"
        "         │    │    │    │    ╭ .\n"
        "    il  .97*  ·    ·    ·    ·    .97 he\n"
        "    n'   ·   .89* .05   ·    ·    .89 doesn't\n"
        "  aime   ·   .10  .86*  ·    ·    .86 like\n"
        "   pas   ·   .93*  ·    ·    ·    .93 doesn't\n"
        "   les   ·   .08  .11  .74* .05   .74 apples\n"
        "pommes   ·    ·    ·   .97*  ·    .97 apples\n"
        "     .   ·    ·    ·    ·   1.0*  1.0 .\n");
  const std::string bare = draw_heat_map(kMap, kSource, kTarget, {.name_largest = false});
  CHECK(bare.find(".97 he") == std::string::npos);
  CHECK(bare.find('\x1b') == std::string::npos);
}

TEST_CASE("heat map: with colours two columns a weight and a mark") {
  const std::string picture = draw_heat_map(kMap, kSource, kTarget, {.color = Color::truecolor});
  CHECK(stripped(picture) ==
        "       ╭ he\n"
        "       │ ╭ doesn't\n"
        "       │ │ ╭ like\n"
        "       │ │ │ ╭ apples\n"
        "       │ │ │ │ ╭ .\n"
        "    il ╺╸          .97 he\n"
        "    n'   ╺╸        .89 doesn't\n"
        "  aime     ╺╸      .86 like\n"
        "   pas   ╺╸        .93 doesn't\n"
        "   les       ╺╸    .74 apples\n"
        "pommes       ╺╸    .97 apples\n"
        "     .         ╺╸  1.0 .\n"
        "\n"
        "       0              1   ╺╸ largest\n");
  CHECK(picture.find("\x1b[48;2;204;229;255m") != std::string::npos);  // weight 1
  CHECK(picture.find("\x1b[48;2;30;38;52m  ") != std::string::npos);   // weight 0
  const std::string light =
      draw_heat_map(kMap, kSource, kTarget, {.color = Color::palette256, .background = Background::light});
  CHECK(light.find("\x1b[48;5;17m") != std::string::npos);
  CHECK(light.find("\x1b[48;5;255m  ") != std::string::npos);
  CHECK(light.find("48;2;") == std::string::npos);
  CHECK(stripped(light) == stripped(picture));
  const std::vector<float> odd = {NAN, 0.f};
  CHECK(stripped(draw_heat_map({1, 2, odd}, {"a", "b"}, {"x"}, {.color = Color::truecolor})).find("x ??") !=
        std::string::npos);
  for (const std::string& line : lines_of(picture)) {
    if (line.find('\x1b') != std::string::npos) CHECK(line.rfind("\x1b[0m") != std::string::npos);
  }
}

TEST_CASE("heat map: vertical words") {
  CHECK(draw_heat_map({1, 3, std::span<const float>(kWeights).first(3)}, {"ab", "abcdefghijklmn", "né"},
                      {"x"}, {.header = Header::vertical, .name_largest = false}) ==
        "         a\n"
        "         b\n"
        "         c\n"
        "         d\n"
        "         e\n"
        "         f\n"
        "         g\n"
        "         h\n"
        "         i\n"
        "         j\n"
        "    a    k    n\n"
        "    b    ⋮    é\n"
        "x  .97*  ·    ·\n");
}

TEST_CASE("heat map: long sentences are cut into blocks that fit") {
  Words source;
  for (int i = 0; i < 50; ++i) source.push_back("word" + std::to_string(i));
  std::mt19937 random(2);
  const auto weights = random_weights(random, 2, 50);
  for (Color color : {Color::none, Color::palette256}) {
    for (int width : {20, 40, 80, 120, 200}) {
      CAPTURE(width);
      const std::string picture = draw_heat_map({2, 50, weights}, source, {"a", "extraordinairement"},
                                                {.color = color, .width = width});
      for (const std::string& line : lines_of(stripped(picture))) CHECK(utf8::display_width(line) <= width);
      const bool blocks = picture.find("source words 1 to ") != std::string::npos;
      CHECK(blocks == (color == Color::none ? width < 260 : width < 120));
      if (blocks && width > 20) CHECK(picture.find(" to 50 of 50") != std::string::npos);
    }
  }
  // Each row is marked once over all blocks.
  const std::string plain = draw_heat_map({2, 50, weights}, source, {"a", "b"}, {.width = 60});
  CHECK(std::count(plain.begin(), plain.end(), '*') == 2);
}

TEST_CASE("heat map: weights and words that are not as they should be") {
  const std::vector<float> odd = {NAN, 0.5f, 0.f, 0.f, 7.f, -1.f};
  CHECK(draw_heat_map({3, 2, odd}, {"a", "b"}, {"x", "y", "z"}) ==
        "    ╭ a\n"
        "    │    ╭ b\n"
        "x   ??  .50*  .50 b\n"
        "y   ·    ·\n"
        "z  1.0*  ·    1.0 a\n");
  CHECK(draw_heat_map({0, 2, {}}, {"a", "b"}, {}).empty());
  CHECK(draw_heat_map({2, 0, {}}, {}, {"a", "b"}).empty());
  const std::vector<float> one = {1.f};
  const std::string hostile = draw_heat_map({1, 1, one}, {"\x1b[2J\n"}, {"\xff"});
  CHECK(hostile.find('\x1b') == std::string::npos);
  CHECK(lines_of(hostile).size() == 2);
  CHECK_THROWS_WITH_AS(draw_heat_map({1, 2, one}, {"a", "b"}, {"x"}),
                       "draw_heat_map: 1 x 2 weights wanted, 1 given", std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      draw_heat_map({1, 1, one}, {"a", "b"}, {"x"}),
      "draw_heat_map: a word for each column and row: 2 source and 1 target words for [1, 1]",
      std::invalid_argument);
}

TEST_CASE("heat map: words whose width no table knows") {
  const std::vector<float> w = {0.5f, 0.5f};
  const Words hindi = {"किताब", "।"};
  const HeatMapOptions moving{.color = Color::palette256, .cursor = true};
  const std::string picture = draw_heat_map({2, 1, w}, {"book"}, hindi, moving);
  CHECK(picture.find("\x1b[7G") != std::string::npos);    // behind किताब, to the first cell
  CHECK(picture.find("। \x1b[48") != std::string::npos);  // behind the danda there is no need
  CHECK(draw_heat_map({2, 1, w}, {"book"}, hindi, {.color = Color::palette256}).find("G") ==
        std::string::npos);
}

TEST_CASE("heat map: any size, any words, any width") {
  std::mt19937 random(9);
  const Words pool = {
      "", "a", "中文字", "किताब", "\xff\xfe", "👩\u200D🚀", "e\u0301", "anticonstitutionnellement", "\t"};
  for (int round = 0; round < 300; ++round) {
    const auto rows = static_cast<int64_t>(random() % 8);
    const auto columns = static_cast<int64_t>(random() % 40);
    Words source;
    Words target;
    for (int64_t i = 0; i < columns; ++i) source.push_back(pool[random() % pool.size()]);
    for (int64_t i = 0; i < rows; ++i) target.push_back(pool[random() % pool.size()]);
    const auto weights = random_weights(random, rows, columns);
    const HeatMapOptions options{.color = static_cast<Color>(random() % 3),
                                 .background = static_cast<Background>(random() % 3),
                                 .width = static_cast<int>(random() % 100) - 5,
                                 .header = static_cast<Header>(random() % 3)};
    const std::string picture = draw_heat_map({rows, columns, weights}, source, target, options);
    CHECK_FALSE(utf8::first_invalid_byte(picture).has_value());
    CHECK(picture.empty() == (rows == 0 || columns == 0));
  }
}

TEST_CASE("terminal: colours and width from the environment") {
  const auto style = [](bool tty, int columns, const std::map<std::string, std::string>& variables) {
    return terminal_style(tty, columns, [&](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  CHECK(style(true, 100, {{"TERM", "xterm-256color"}}).color == Color::palette256);
  CHECK(style(true, 100, {{"TERM", "xterm-256color"}}).width == 100);
  CHECK(style(true, 0, {{"TERM", "xterm"}, {"COLORTERM", "truecolor"}}).color == Color::truecolor);
  CHECK(style(true, 0, {{"TERM", "xterm"}, {"COLORTERM", "24bit"}}).color == Color::truecolor);
  CHECK(style(true, 0, {{"TERM", "xterm-direct"}}).color == Color::truecolor);
  CHECK(style(true, 0, {{"TERM", "linux"}}).color == Color::palette16);
  CHECK(style(true, 0, {{"TERM", "vt220"}, {"COLORTERM", "truecolor"}}).color == Color::truecolor);
  CHECK(set_background({170, 80, 10, 130}, Color::palette16) == "\x1b[43m");
  CHECK(set_foreground({90, 250, 250, 87}, Color::palette16) == "\x1b[96m");
  CHECK(set_quiet(Color::palette16) == "\x1b[90m");
  CHECK(style(true, 0, {{"TERM", "dumb"}, {"COLORTERM", "truecolor"}}).color == Color::none);
  CHECK_FALSE(style(true, 0, {{"TERM", "dumb"}}).cursor);
  CHECK(style(true, 0, {}).color == Color::none);
  CHECK(style(true, 0, {{"TERM", "xterm"}, {"NO_COLOR", "1"}}).color == Color::none);
  CHECK(style(true, 0, {{"TERM", "xterm"}, {"NO_COLOR", ""}}).color == Color::palette256);
  CHECK(style(false, 0, {{"TERM", "xterm"}}).color == Color::none);
  CHECK(style(false, 0, {{"TERM", "xterm"}, {"FORCE_COLOR", "1"}}).color == Color::palette256);
  CHECK(style(false, 0, {{"FORCE_COLOR", "1"}, {"NO_COLOR", "1"}}).color == Color::none);
  CHECK(style(false, 0, {{"FORCE_COLOR", "0"}}).color == Color::none);
  CHECK(style(false, 0, {}).width == 80);
  CHECK(style(false, 0, {{"COLUMNS", "132"}}).width == 132);
  CHECK(style(false, 0, {{"COLUMNS", "wide"}}).width == 80);
  CHECK(style(true, 0, {{"COLORFGBG", "15;0"}}).background == Background::dark);
  CHECK(style(true, 0, {{"COLORFGBG", "0;default;15"}}).background == Background::light);
  CHECK(style(true, 0, {{"COLORFGBG", "nonsense"}}).background == Background::unknown);
  CHECK(heat_map_options(style(true, 90, {{"TERM", "xterm"}})).width == 90);
  CHECK(heat_map_options(style(true, 90, {{"TERM", "xterm"}})).cursor);
}

#if __has_include(<pty.h>)
TEST_CASE("terminal: one is as large as it says") {
  const winsize size{.ws_row = 24, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
  int ours = -1, its = -1;
  REQUIRE(openpty(&ours, &its, nullptr, nullptr, &size) == 0);
  const TerminalStyle style = terminal_style(its);
  CHECK(style.is_terminal);
  CHECK(style.width == 100);
  CHECK(style.height == 24);
  close(its);
  close(ours);
}
#endif

TEST_CASE("terminal: shades run from weak to strong") {
  const auto luminance = [](const Shade& s) { return 0.299 * s.red + 0.587 * s.green + 0.114 * s.blue; };
  for (int i = 0; i < 20; ++i) {
    CHECK(luminance(blue_shade(i / 20.0, Background::dark)) <
          luminance(blue_shade((i + 1) / 20.0, Background::dark)));
    CHECK(luminance(blue_shade(i / 20.0, Background::light)) >
          luminance(blue_shade((i + 1) / 20.0, Background::light)));
  }
  CHECK(blue_shade(NAN, Background::dark).index == blue_shade(0, Background::dark).index);
  CHECK(blue_shade(9, Background::dark).index == blue_shade(1, Background::dark).index);
  CHECK(blue_shade(1, Background::dark).is_bright());
  CHECK_FALSE(blue_shade(1, Background::light).is_bright());
}

TEST_CASE("heat map: a weight that two digits cannot tell from 1 is 1.0") {
  const std::vector<float> nearly = {.994f, .996f};
  const std::string picture = draw_heat_map({1, 2, nearly}, {"a", "b"}, {"x"});
  CHECK(picture.find(" .99") != std::string::npos);
  CHECK(picture.find("1.0*") != std::string::npos);
}

TEST_CASE("terminal: the first of the two whites is a light background, too") {
  const auto white = [](const char* name) { return std::string(name) == "COLORFGBG" ? "0;7" : nullptr; };
  CHECK(terminal_style(true, 0, white).background == Background::light);
}
