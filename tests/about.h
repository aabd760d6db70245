#pragma once

// A number to compare with: CHECK(x == about(want, 1e-6)).

#include <cmath>
#include <ostream>

/// Equal to x where |x - value| <= relative |value| + absolute; NaN and infinity never are.
struct About {
  double value, relative, absolute;
};

/// The bound is relative alone unless an absolute one is given, as it must be near 0. doctest's Approx takes
/// its bound of 1 + |want|, and so calls 0.0001 right that is 12 % off.
constexpr About about(double want, double relative = 1e-6, double absolute = 0) {
  return {want, relative, absolute};
}

inline bool operator==(double x, const About& a) {
  return std::abs(x - a.value) <= a.relative * std::abs(a.value) + a.absolute;
}

inline std::ostream& operator<<(std::ostream& out, const About& a) {
  out << "about " << a.value << " (within " << a.relative << " of it";
  if (a.absolute > 0) out << ", and " << a.absolute;
  return out << ")";
}

/// The sum of numbers, of JSON's too.
template <class Numbers>
double sum_of(const Numbers& numbers) {
  double sum = 0;
  for (const auto& x : numbers) sum += static_cast<double>(x);
  return sum;
}
