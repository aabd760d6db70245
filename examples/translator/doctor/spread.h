#pragma once

#include <algorithm>
#include <vector>

namespace translator::doctor {

/// The value of which a share `p` of the others are below; 0 of none. The order of values is lost.
template <class T>
double quantile(std::vector<T>& values, double p) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<long>(p * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return static_cast<double>(*at);
}

/// Where values are, and how far they scatter, told from quartiles: what is damaged moves neither much.
struct Spread {
  double median = 0;
  /// standard deviations of a normal distribution with the same quartiles
  double below = 1, above = 1;
};
template <class T>
Spread spread_of(std::vector<T> values) {
  constexpr double kQuartile = 0.6745;  // of a normal distribution
  const double median = quantile(values, 0.5), low = quantile(values, 0.25), high = quantile(values, 0.75);
  auto deviation = [](double distance) { return distance > 1e-6 ? distance / kQuartile : 1.0; };
  return {median, deviation(median - low), deviation(high - median)};
}

}  // namespace translator::doctor
