#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace translator {

/// Mean and sample standard deviation.
struct Spread {
  double mean = 0, deviation = 0;
  int64_t count = 0;
};
Spread spread_of(const std::vector<double>& values);

/// 0 of nothing.
double median(std::vector<double> values);

/// `12.5 ± 0.3`, both times `factor`; without a deviation where there is one value, `-` where there is none.
std::string text_of(const Spread& spread, double factor, int digits);

/// True when the means differ by more than twice the standard error of their difference.
bool clearly_apart(const Spread& a, const Spread& b);

}  // namespace translator
