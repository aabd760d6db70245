#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace papers {

/// Values over some places of the x axis; an empty place has none.
struct Series {
  std::string name;
  /// of each place, those of all seeds
  std::vector<std::vector<double>> values;
};

struct Panel {
  std::string title, x_name;
  /// as they stand under the axis
  std::vector<std::string> places = {};
  /// six at most: the colours that can be told apart
  std::vector<Series> series = {};
  /// instead of lines
  bool bars = false;
  /// of the y axis
  double low = 0, high = 1;
  /// the y axis doubles from line to line; low is above 0
  bool log = false;
  /// of the numbers beside the y axis: 100 for per cent
  double factor = 1;
  /// a line across at this value, where it is a number
  double guide = NAN;
  /// what the line is, in the legend
  std::string guide_name = "";
};

/// Panels one below the other, each with a line or bars of means for every series, and the range of the seeds.
/// A legend names the series where there are several: of a single one the title should tell. Values that are no
/// numbers are left out. In the colours that the reader prefers, light or dark.
std::string chart_svg(const std::string& title, const std::vector<Panel>& panels);

}  // namespace papers
