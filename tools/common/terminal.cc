#include <common/terminal.h>

#include <common/tell.h>
#include <common/utf8.h>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace translator {
namespace {

using Ramp = std::array<Shade, 11>;

// Weight 0 to 1 in tenths. The 256-colour neighbours are chosen by eye to stay distinct where the nearest
// ones would repeat.
constexpr Ramp kStrongIsBright = {{{30, 38, 52, 235},
                                   {29, 47, 76, 236},
                                   {28, 57, 102, 17},
                                   {27, 69, 129, 18},
                                   {29, 84, 157, 25},
                                   {34, 101, 184, 26},
                                   {46, 121, 208, 32},
                                   {70, 145, 226, 75},
                                   {106, 171, 240, 117},
                                   {152, 200, 250, 153},
                                   {204, 229, 255, 195}}};
constexpr Ramp kStrongIsDark = {{{236, 242, 249, 255},
                                 {217, 231, 246, 254},
                                 {194, 218, 242, 153},
                                 {164, 201, 236, 117},
                                 {130, 181, 228, 75},
                                 {96, 158, 217, 33},
                                 {66, 134, 203, 32},
                                 {43, 109, 184, 26},
                                 {27, 84, 160, 25},
                                 {17, 61, 130, 18},
                                 {10, 40, 96, 17}}};

std::string_view text_of(const char* value) { return value == nullptr ? std::string_view() : value; }

int number_of(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

// COLORFGBG is `foreground;background`, or with a word in between, in the 16 old colours.
Background background_from(std::string_view colorfgbg) {
  const size_t cut = colorfgbg.rfind(';');
  if (cut == std::string_view::npos) return Background::unknown;
  const int index = number_of(colorfgbg.substr(cut + 1));
  if (index < 0 || index > 15) return Background::unknown;
  return index == 7 || index >= 9 ? Background::light : Background::dark;
}

// The 16 colours, as most terminals show them: normal, then bright.
constexpr int kBasic[16][3] = {{0, 0, 0},       {170, 0, 0},     {0, 170, 0},    {170, 85, 0},
                               {0, 0, 170},     {170, 0, 170},   {0, 170, 170},  {170, 170, 170},
                               {85, 85, 85},    {255, 85, 85},   {85, 255, 85},  {255, 255, 85},
                               {85, 85, 255},   {255, 85, 255},  {85, 255, 255}, {255, 255, 255}};

int nearest_basic(const Shade& shade) {
  int best = 0;
  auto distance = [&](int i) {
    const int r = shade.red - kBasic[i][0], g = shade.green - kBasic[i][1], b = shade.blue - kBasic[i][2];
    return r * r + g * g + b * b;
  };
  for (int i = 1; i < 16; ++i)
    if (distance(i) < distance(best)) best = i;
  return best;
}

// Codes of backgrounds: 40 to 47 and 100 to 107 for the 16 colours, 48 for others. Of text: ten less each.
std::string set_color(const Shade& shade, Color color, int first) {
  if (color == Color::none) return "";
  if (color == Color::palette16) {
    const int index = nearest_basic(shade);
    return fmt::format("\x1b[{}m", index < 8 ? first + index : first + 60 + index - 8);
  }
  if (color == Color::palette256) return fmt::format("\x1b[{};5;{}m", first + 8, shade.index);
  return fmt::format("\x1b[{};2;{};{};{}m", first + 8, shade.red, shade.green, shade.blue);
}

}  // namespace

TerminalStyle terminal_style(bool is_terminal, int columns,
                             const std::function<const char*(const char*)>& environment) {
  const auto variable = [&](const char* name) { return text_of(environment(name)); };
  const std::string_view term = variable("TERM");
  TerminalStyle out{.is_terminal = is_terminal, .cursor = is_terminal && term != "dumb"};
  out.background = background_from(variable("COLORFGBG"));
  out.width = columns > 0 ? columns : number_of(variable("COLUMNS"));
  if (out.width <= 0) out.width = 80;

  const std::string_view force = variable("FORCE_COLOR");
  const bool forced = !force.empty() && force != "0";
  if (!variable("NO_COLOR").empty()) return out;
  if (!forced && (!out.cursor || term.empty())) return out;
  const std::string_view colorterm = variable("COLORTERM");
  const bool direct =
      colorterm == "truecolor" || colorterm == "24bit" || term.ends_with("-direct") || force == "3";
  const bool old = term == "linux" || term == "ansi" || term == "cygwin" || term.starts_with("vt") ||
                   term.ends_with("-16color");
  out.color = direct ? Color::truecolor : old ? Color::palette16 : Color::palette256;
  return out;
}

TerminalStyle terminal_style(int fd) {
  const bool is_terminal = isatty(fd) == 1;
  winsize size{};
  const bool known = is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0;
  TerminalStyle out = terminal_style(is_terminal, known ? size.ws_col : 0,
                                     [](const char* name) { return std::getenv(name); });
  if (known) out.height = size.ws_row;
  return out;
}

void tell_text(std::string_view text) {
  std::string shown = utf8::printable_lines(text);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

std::string what_of(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system && std::ferror(stdout) ? "standard output cannot be written: " + system->code().message()
                                       : error.what();
}

bool Shade::is_bright() const { return 0.299 * red + 0.587 * green + 0.114 * blue > 140; }

Shade blue_shade(double weight, Background background) {
  const Ramp& ramp = background == Background::light ? kStrongIsDark : kStrongIsBright;
  const double t = std::isnan(weight) ? 0 : std::clamp(weight, 0.0, 1.0) * static_cast<double>(ramp.size() - 1);
  const auto low = std::min(static_cast<size_t>(t), ramp.size() - 2);
  const double share = t - static_cast<double>(low);
  const auto mix = [&](int Shade::* part) {
    return static_cast<int>(std::lround(ramp[low].*part * (1 - share) + ramp[low + 1].*part * share));
  };
  return {mix(&Shade::red), mix(&Shade::green), mix(&Shade::blue), ramp[share < 0.5 ? low : low + 1].index};
}

std::string set_background(const Shade& shade, Color color) { return set_color(shade, color, 40); }

std::string set_foreground(const Shade& shade, Color color) { return set_color(shade, color, 30); }

std::string set_quiet(Color color) {
  return color == Color::none ? "" : color == Color::palette16 ? "\x1b[90m" : "\x1b[38;5;244m";
}

std::string reset(Color color) { return color == Color::none ? "" : "\x1b[0m"; }

}  // namespace translator
