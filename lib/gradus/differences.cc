#include <gradus/differences.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace gradus {

Function pointwise(std::function<double(double)> f) {
  return [f = std::move(f)](const std::vector<double>& x) {
    std::vector<double> y;
    for (double at : x) y.push_back(f(at));
    return y;
  };
}

Difference difference(const Function& f, double step) {
  std::vector<double> y = f({step, -step, 2 * step, -2 * step, 3 * step, -3 * step, 4 * step, -4 * step});
  double d1 = y[0] - y[1], d2 = y[2] - y[3], d3 = y[4] - y[5], d4 = y[6] - y[7];
  double eighth = (4.0 / 5 * d1 - 1.0 / 5 * d2 + 4.0 / 105 * d3 - 1.0 / 280 * d4) / step;
  double sixth = (3.0 / 4 * d1 - 3.0 / 20 * d2 + 1.0 / 60 * d3) / step;
  double rounding = largest_finite(y) * std::numeric_limits<double>::epsilon() / step;
  return {eighth, std::abs(eighth - sixth), rounding};
}

Difference careful_difference(const Function& f, double floor, double enough) {
  std::optional<Difference> best;
  for (double step : {1e-2, 2.5e-3, 2e-4, 1e-5}) {
    Difference d = difference(f, step);
    if (!best || !(d.doubt + d.rounding >= best->doubt + best->rounding)) best = d;
    if (best->doubt <= std::max(best->rounding, enough * std::max(floor, std::abs(best->value)))) break;
  }
  return *best;
}

double largest_finite(const std::vector<double>& values) {
  double size = 0;
  for (double v : values)
    if (std::isfinite(v)) size = std::max(size, std::abs(v));
  return size;
}

double relative_error(double a, double b, double floor) {
  if (a == b && std::isfinite(a)) return 0;
  return std::abs(a - b) / std::max({std::abs(a), std::abs(b), floor});
}

}  // namespace gradus
