#pragma once

#include <gradus/diagnosis.h>
#include <common/terminal.h>
#include <common/utf8.h>

#include <string>
#include <vector>

namespace lens {

using PictureStyle = translator::TerminalStyle;

/// What stdout can show, 40 to 120 columns wide.
PictureStyle style_of_stdout();

/// Two tensors of one shape, and where they differ.
struct Picture {
  /// "dx"
  std::string name;
  /// NaN in `expected`: not computed
  gradus::Tensor yours, expected;
  /// of the first axis, or empty
  std::vector<std::string> words;
  const char* expected_title = "numeric";
  /// on |yours - expected| / max(floor, |yours|, |expected|)
  double tolerance = 1e-6;
  double floor = 1;
};

/// Three heat maps side by side (one below the other where the terminal is narrow): yours, expected,
/// difference; wrong cells outlined. Teal is positive, orange negative, all three on one scale; the numbers
/// are written into the cells where there is room. More than two axes are flattened to rows, a single one
/// with words is drawn downwards.
std::string draw(const Picture& picture, const PictureStyle& style);

using translator::utf8::wrapped;

enum class Tone { plain, quiet, good, bad, strong, code };
std::string toned(const std::string& text, Tone tone, const PictureStyle& style);

}  // namespace lens
