#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <common/spread.h>

namespace bench {

/// Milliseconds since it was made, or since the last lap.
class Stopwatch {
 public:
  double lap() {
    auto now = std::chrono::steady_clock::now();
    double ms = std::chrono::duration<double, std::milli>(now - start_).count();
    start_ = now;
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

using translator::median;
/// Entry floor(q n) of the sorted numbers, from the upper end for q > 0.5: the peer's p10 and p90.
double quantile(std::vector<double> x, double q);
/// To so many digits behind the point.
double rounded(double x, int digits = 3);
/// Largest resident memory of this process so far, MB.
double peak_rss_mb();
/// Page faults that needed no disk, so far.
int64_t page_faults();
/// What multiplies matrices: OpenBLAS's core, and AMX where our own products run on it: "SkylakeX, AMX".
std::string products_by();
/// Slope of log y over log x by least squares: y grows as x to this power.
double exponent(const std::vector<double>& x, const std::vector<double>& y);
/// Runs f in a process of its own, so that its memory figures are its own; returns its exit code.
int in_own_process(const std::function<int()>& f);

}  // namespace bench
