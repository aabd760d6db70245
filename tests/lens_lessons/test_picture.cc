// The pictures of `lens check`, as text.

#include <cmath>
#include <limits>

#include "../quick_doctest.h"
#include "check/check_picture.h"

using gradus::DType, gradus::Tensor;
using lens::draw, lens::Picture, lens::PictureStyle;
using translator::Color;

namespace {

// Without the escape sequences, and spaces at the ends of lines.
std::string plain(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b')
      i = text.find('m', i);
    else
      out += text[i];
    if (text[i] == '\n') out.erase(out.find_last_not_of(" \n") + 1) += '\n';
  }
  return out;
}

Tensor numbers(const gradus::Shape& shape, const std::vector<double>& v) {
  return Tensor::from(shape, v, DType::f64);
}

}  // namespace

TEST_CASE("picture: three maps, the wrong cells outlined") {
  Picture p{
      "x", numbers({2, 2}, {0.5, -0.25, 0, 1}), numbers({2, 2}, {0.5, -0.25, 0.125, 1}), {"he", "eats"}};
  CHECK(draw(p, {.width = 100}) ==
        "       yours             numeric           difference\n"
        "            0      1          0      1          0      1\n"
        "    he   0.50  -0.25       0.50  -0.25          0      0\n"
        "       ┏━━━━━━┓                            ┏━━━━━━┓\n"
        "  eats ┃    0 ┃ 1.00       0.12   1.00     ┃-0.12 ┃    0\n"
        "       ┗━━━━━━┛                            ┗━━━━━━┛\n"
        "  ┏━┓ differs\n");
}

TEST_CASE("picture: every cell of a right answer, no outlines") {
  Picture p{"x", numbers({2, 2}, {0.5, -0.25, 0.125, 1}), numbers({2, 2}, {0.5, -0.25, 0.125, 1}), {}};
  CHECK(draw(p, {.width = 100}) ==
        "    yours          numeric        difference\n"
        "        0     1        0     1        0     1\n"
        "  0  0.50 -0.25     0.50 -0.25        0     0\n"
        "  1  0.12  1.00     0.12  1.00        0     0\n");
}

TEST_CASE("picture: what differs by little beside the numbers of its whole input is not outlined") {
  Picture p{"x", numbers({2}, {1, 1e-9}), numbers({2}, {1, 0}), {}};
  CHECK(draw(p, {.width = 100}).find("differs") == std::string::npos);
  p.floor = 1e-9;
  CHECK(draw(p, {.width = 100}).find("differs") != std::string::npos);
}

TEST_CASE("picture: one below the other where the terminal is narrow; brackets there") {
  Picture p{"x", numbers({1, 3}, {1, 2, 3}), numbers({1, 3}, {1, 2, 4}), {}};
  CHECK(draw(p, {.width = 40}) ==
        "    yours\n"
        "         0      1      2\n"
        "  0   1.00   2.00 [ 3.00 ]\n\n"
        "    numeric\n"
        "         0      1      2\n"
        "  0   1.00   2.00   4.00\n\n"
        "    difference\n"
        "         0      1      2\n"
        "  0      0      0 [-1.00 ]\n\n"
        "  [ ] differs\n");
}

TEST_CASE("picture: what is not a number is seen, what was not computed is no 0") {
  double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  Picture p{"x", numbers({1, 3}, {nan, inf, 1}), numbers({1, 3}, {1, 2, nan}), {}};
  // Not computed is not wrong: the outline ends before it.
  CHECK(draw(p, {.width = 100}) ==
        "    yours                    numeric                  difference\n"
        "         0      1      2          0      1      2          0      1      2\n"
        "    ┏━━━━━━━━━━━━━┓                                   ┏━━━━━━━━━━━━━┓\n"
        "  0 ┃  nan    inf ┃ 1.00       1.00   2.00      ·     ┃  nan    inf ┃    ·\n"
        "    ┗━━━━━━━━━━━━━┛                                   ┗━━━━━━━━━━━━━┛\n"
        "  ┏━┓ differs\n");
}

TEST_CASE("picture: colours change nothing but the colours, and each palette has its own") {
  Picture p{
      "x", numbers({2, 2}, {0.5, -0.25, 0, 1}), numbers({2, 2}, {0.5, -0.25, 0.125, 1}), {"he", "eats"}};
  std::string none = draw(p, {.width = 100});
  none = none.substr(0, none.find("  ┏━┓ differs"));
  for (auto [color, mark] : {std::pair{Color::truecolor, "\x1b[48;2;"},
                             {Color::palette256, "\x1b[48;5;"},
                             {Color::palette16, "\x1b[1"}}) {
    std::string text = draw(p, {.color = color, .width = 100});
    CHECK(text.find(mark) != std::string::npos);
    CHECK(plain(text) == none + "     negative     positive  ┏━┓ differs\n");
  }
  CHECK(none.find('\x1b') == std::string::npos);
  // A small number beside a large one is seen, in 16 colours, too.
  auto colours = [](double small) {
    const Tensor x = numbers({1, 2}, {1, small});
    const std::string text = draw({"x", x, x, {}}, {.color = Color::palette16, .width = 100});
    std::string out;
    for (size_t at = 0; (at = text.find('\x1b', at)) != std::string::npos; ++at)
      out += text.substr(at, text.find('m', at) - at);
    return out;
  };
  CHECK(colours(0.125) != colours(0));
}

TEST_CASE("picture: large inputs are cut and say so; small numbers get a unit") {
  std::vector<double> many(40 * 50, 0.001);
  Tensor t = numbers({40, 50}, many);
  std::string text = draw({"x", t, t, {}}, {.width = 80});
  CHECK(text.find("of 40 x 50") != std::string::npos);
  CHECK(text.find("in units of 1e-3") != std::string::npos);
  size_t longest = 0, line = 0;
  for (char c : text) {
    line = c == '\n' ? 0 : line + ((c & 0xc0) != 0x80);
    longest = std::max(longest, line);
  }
  CHECK(longest <= 80);
}

TEST_CASE("wrapped: lines within the width, long words whole") {
  CHECK(lens::wrapped("one two three four", 12, 2) == "  one two\n  three four\n");
  CHECK(lens::wrapped("extraordinarily long", 8, 0) == "extraordinarily\nlong\n");
}
