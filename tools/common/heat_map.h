#pragma once

#include <string>
#include <vector>

#include <common/terminal.h>
#include <common/weights.h>

namespace translator {

struct HeatMapOptions {
  /// How the source words stand above their columns.
  enum class Header {
    /// stairs where they fit, else vertical
    automatic,
    /// written out, each led down to its column by a line
    stairs,
    /// letter under letter, long words cut
    vertical,
  };

  Color color = Color::none;
  Background background = Background::unknown;
  /// columns to fit into; a wider map is cut into blocks of source words
  int width = 80;
  Header header = Header::automatic;
  /// behind each row its largest weight and that source word, if there is room
  bool name_largest = true;
  /// may move the cursor, for words whose width no table knows (Devanagari)
  bool cursor = false;
  /// a last line that shows the scale (with colours only)
  bool legend = true;
};

/// Draws attention weights for a terminal: target words down, source words across, one cell a weight.
///
/// With colours a cell is two columns of blue and the largest weight of a row carries a mark. Without, a cell
/// is the weight in two digits (`.93`, `1.0`; a dot below .05) and the largest one of a row has a star.
/// Weights that are not numbers show as `??`. Words are cleaned of what would disturb the terminal; widths
/// are those of Unicode, not bytes. Each line ends in a line feed; an empty matrix gives an empty text.
///
/// Throws std::invalid_argument unless there is one source word a column and one target word a row.
std::string draw_heat_map(const Weights& weights, const std::vector<std::string>& source,
                          const std::vector<std::string>& target, const HeatMapOptions& options = {});

/// Options for what `style` can show.
HeatMapOptions heat_map_options(const TerminalStyle& style);

}  // namespace translator
