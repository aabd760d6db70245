#pragma once

#include <gradus/kernels/products/gemm.h>
#include <gradus/kernels/simd_targets.h>
#include <gradus/tensor.h>

#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "../function_ref.h"
#include "../quick_doctest.h"
#include "../skip.h"

// Helpers of the kernel tests. Each kernel is held against a plain loop in the test, on every instruction set
// that this CPU has, in f32 and f64.

namespace kernel_test {

/// Runs `body` once per instruction set the kernels were compiled for and this CPU has, and once more with AMX.
inline void on_every_target(const gradus::testing::FunctionRef<void()>& body) {
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  REQUIRE(!targets.empty());
  const bool amx = gradus::kernels::amx_ready();
  gradus::kernels::amx_allow(false);
  for (const int64_t target : targets) {
    INFO("instruction set ", std::string(hwy::TargetName(target)));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
  gradus::kernels::amx_allow(true);
  if (!amx) return;
  INFO("instruction set AMX");
  body();
}

/// n numbers that begin one element past an aligned address, so nothing may rely on alignment, with a
/// sentinel on either side that must survive.
template <class T>
class Row {
 public:
  explicit Row(int64_t n, T value = T(0)) : n_(n), data_(static_cast<size_t>(n) + 2, value) {
    data_[0] = data_[static_cast<size_t>(n) + 1] = kSentinel;
  }
  /// Normally distributed, mean 0.
  static Row random(int64_t n, std::mt19937& rng, double deviation = 1) {
    Row row(n);
    std::normal_distribution<double> normal(0, deviation);
    for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(normal(rng));
    return row;
  }
  /// Such rows, stored `stride` apart, with NaN behind each, which must not be read.
  static Row random_rows(int64_t rows, int64_t columns, int64_t stride, std::mt19937& rng) {
    Row out = random(rows * stride, rng);
    for (int64_t i = 0; i < out.size(); ++i)
      if (i % stride >= columns) out[i] = std::numeric_limits<T>::quiet_NaN();
    return out;
  }
  T* data() { return data_.data() + 1; }
  const T* data() const { return data_.data() + 1; }
  T& operator[](int64_t i) { return data_[static_cast<size_t>(i) + 1]; }
  T operator[](int64_t i) const { return data_[static_cast<size_t>(i) + 1]; }
  int64_t size() const { return n_; }
  bool intact() const { return data_.front() == kSentinel && data_.back() == kSentinel; }
  bool same_bits(const Row& other) const {
    return n_ == other.n_ && std::memcmp(data(), other.data(), static_cast<size_t>(n_) * sizeof(T)) == 0;
  }

 private:
  static constexpr T kSentinel = T(-77);
  int64_t n_;
  std::vector<T> data_;
};

/// How far results of T may lie from those computed in double: f32 twins round, f64 twins nearly agree.
template <class T>
constexpr double tolerance() {
  return sizeof(T) == 4 ? 2e-6 : 2e-14;
}

/// |a - b| <= tolerance relative to the larger of |b| and `scale`; NaN is never close.
inline bool close(double a, double b, double relative, double scale = 1) {
  if (a == b) return true;
  return std::fabs(a - b) <= relative * std::max(std::fabs(b), scale);
}

/// The largest error of `got` against `want`, relative to `scale` at least; NaN when any is.
template <class T, class U>
double worst_error(const Row<T>& got, const Row<U>& want, double scale = 1) {
  double worst = got.size() == want.size() ? 0 : std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    const double a = got[i], b = want[i];
    if (a == b) continue;
    const double error = std::fabs(a - b) / std::max(std::fabs(b), scale);
    worst = gradus::worse(worst, error);
  }
  return worst;
}

/// Central difference of `f` at x[i], for every i.
inline Row<double> numeric_gradient(Row<double>& x, const gradus::testing::FunctionRef<double()>& f,
                                    double h = 1e-6) {
  Row<double> gradient(x.size());
  for (int64_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + h;
    const double up = f();
    x[i] = kept - h;
    const double down = f();
    x[i] = kept;
    gradient[i] = (up - down) / (2 * h);
  }
  return gradient;
}

template <class T>
double inner(const Row<T>& x, const Row<T>& y) {
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i) sum += double(x[i]) * double(y[i]);
  return sum;
}

}  // namespace kernel_test
