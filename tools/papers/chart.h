#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace papers {

/// Values over some places of the x axis; an empty place has none.
struct Series {
  std::string name;
  std::vector<std::vector<double>> values;  ///< of each place, those of all seeds
};

struct Panel {
  std::string title, x_name;
  std::vector<std::string> places = {};  ///< as they stand under the axis
  std::vector<Series> series = {};       ///< six at most: the colours that can be told apart
  bool bars = false;                     ///< instead of lines
  double low = 0, high = 1;              ///< of the y axis
  bool log = false;                      ///< the y axis doubles from line to line; low is above 0
  double factor = 1;                     ///< of the numbers beside the y axis: 100 for per cent
  double guide = NAN;                    ///< a line across at this value, where it is a number
  std::string guide_name = "";           ///< what the line is, in the legend
};

/// Panels one below the other, each with a line or bars of means for every series, and the range of the seeds.
/// A legend names the series where there are several: of a single one the title should tell. Values that are no
/// numbers are left out. In the colours that the reader prefers, light or dark.
std::string chart_svg(const std::string& title, const std::vector<Panel>& panels);

}  // namespace papers
