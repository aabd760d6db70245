#pragma once

#include <functional>
#include <string>

namespace translator {

/// How many colours a terminal shows.
enum class Color { none, palette16, palette256, truecolor };

/// What lies behind the text. Few terminals tell; `unknown` is drawn so that it reads on both.
enum class Background { unknown, dark, light };

struct TerminalStyle {
  bool is_terminal = false;
  /// can be moved: not where TERM is `dumb`
  bool cursor = false;
  Color color = Color::none;
  Background background = Background::unknown;
  int width = 80;
  /// lines; 0: not known
  int height = 0;
};

/// What the file descriptor (1 for stdout, 2 for stderr) can show.
/// - color: none where NO_COLOR is set (no-color.org), where it is not a terminal or where TERM is unset or
///   `dumb`; 24 bits where COLORTERM is `truecolor` or `24bit` or TERM says `direct`; 16 where TERM is one of
///   the old ones (`linux`, `ansi`, `vt220`, ...-16color); 256 otherwise. A non-empty FORCE_COLOR other than 0
///   stands in for the terminal, so that coloured output can be piped on.
/// - width: the terminal's columns, else COLUMNS, else 80.
/// - background: from COLORFGBG, where set.
TerminalStyle terminal_style(int fd);

/// The same from its ingredients, for tests. `columns` is 0 when not known; `environment` gives null for what
/// is not set.
TerminalStyle terminal_style(bool is_terminal, int columns,
                             const std::function<const char*(const char*)>& environment);

/// Columns of a line that is printed: a file's may be longer than a terminal's, but not without end.
inline int screen_width(const TerminalStyle& style) { return style.is_terminal ? style.width : 200; }

/// A colour as the terminal gets it: 24 bits, and its nearest of the 256. For 16 the nearest is worked out.
struct Shade {
  int red = 0;
  int green = 0;
  int blue = 0;
  /// among the 256
  int index = 0;

  /// True where dark text reads better on it than light text.
  bool is_bright() const;
};

/// The blue for a weight between 0 and 1 (others are clamped, NaN is 0). On dark and unknown backgrounds
/// strong is bright, on light ones strong is dark; the cells of weight 0 have a shade too, so that a map
/// shows its extent on any background.
Shade blue_shade(double weight, Background background);

/// Escape sequences; empty for Color::none.
std::string set_background(const Shade& shade, Color color);
std::string set_foreground(const Shade& shade, Color color);
/// grey for what is secondary, readable on black and on white
std::string set_quiet(Color color);
std::string reset(Color color);

}  // namespace translator
