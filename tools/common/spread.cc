#include <common/spread.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace translator {

Spread spread_of(const std::vector<double>& values) {
  Spread s{.count = static_cast<int64_t>(values.size())};
  double n = static_cast<double>(s.count);
  for (double v : values) s.mean += v / n;
  double squares = 0;
  for (double v : values) squares += (v - s.mean) * (v - s.mean);
  if (s.count > 1) s.deviation = std::sqrt(squares / (n - 1));
  return s;
}

double median(std::vector<double> x) {
  if (x.empty()) return 0;
  std::sort(x.begin(), x.end());
  const size_t n = x.size();
  return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

std::string text_of(const Spread& spread, double factor, int digits) {
  if (spread.count == 0) return "-";
  std::string mean = fmt::format("{:.{}f}", factor * spread.mean, digits);
  return spread.count > 1 ? fmt::format("{} ± {:.{}f}", mean, factor * spread.deviation, digits) : mean;
}

bool clearly_apart(const Spread& a, const Spread& b) {
  auto error = [](const Spread& s) { return s.deviation * s.deviation / static_cast<double>(s.count); };
  return std::abs(a.mean - b.mean) > 2 * std::sqrt(error(a) + error(b));
}

}  // namespace translator
