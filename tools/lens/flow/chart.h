#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lens {

// What the pictures of `lens flow` share: numbers on a log scale over words, or layers.

constexpr double kChartLeft = 62, kChartRight = 24, kChartWidth = 760;

/// From `low` to `high`, powers of ten, at `height` below `top`; a column for each of `count`.
struct ChartScale {
  double low = 0, high = 0;
  size_t count = 0;
  double top = 0, height = 0;
  double column() const { return (kChartWidth - kChartLeft - kChartRight) / static_cast<double>(count); }
  double x(size_t j) const { return kChartLeft + column() * (static_cast<double>(j) + 0.5); }
  double y(double log10) const;
  /// So that all finite numbers, and 1, are on it.
  void take(const std::vector<double>& log10s);
  /// to whole powers
  void round();
  /// lines, and their powers at the left
  std::string grid() const;
};

/// The beginning of a picture: its style, to which `style` is added, and its title.
std::string chart_start(double height, const std::string& title, const std::string& style = "");

using ChartPoints = std::vector<std::pair<double, double>>;
std::string text_of(const ChartPoints& points);
ChartPoints points_of(const ChartScale& scale, const std::vector<double>& line);
/// A line with a pale band from low to high.
std::string line_and_band(const ChartScale& scale, const std::vector<double>& median,
                          const std::vector<double>& low, const std::vector<double>& high,
                          const std::string& name);

}  // namespace lens
