#pragma once

// Internal: slopes by central differences, for gradcheck and tools/lens. Not installed.

#include <functional>
#include <vector>

namespace gradus {

/// A slope by central differences of eight points.
struct Difference {
  /// df/dx at 0, with an error of order step^8.
  double value = 0;
  /// How far the differences of order step^6 are from it: more than its error, unless that is rounding.
  double doubt = 0;
  /// The error of f, known to 16 digits, divided by the step.
  double rounding = 0;
};

/// f at many points at once, which may be much cheaper than one by one.
using Function = std::function<std::vector<double>(const std::vector<double>&)>;

/// One by one.
Function pointwise(std::function<double(double)> f);

Difference difference(const Function& f, double step);

/// The same with a step from 1e-2 down to 1e-5: the largest whose doubt is within its rounding or `enough`
/// times max(|value|, floor), else the one with the least doubt + rounding. Large steps lose fewer of f's 16
/// digits, small ones suit curvature and nearby kinks (relu, maxout). The engine's gradient has no influence.
Difference careful_difference(const Function& f, double floor, double enough = 1e-8);

/// Largest |v| of the numbers that are finite; 0 where none is.
double largest_finite(const std::vector<double>& values);

/// |a - b| / max(|a|, |b|, floor); 0 where all of them are 0, NaN where one is NaN or infinite.
double relative_error(double a, double b, double floor);

}  // namespace gradus
