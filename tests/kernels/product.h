#pragma once

#include <cmath>
#include <limits>
#include <random>

#include "util.h"

namespace kernel_test {

struct Product {
  bool ta, tb;
  int64_t m, n, k;
  bool add = false;
  float alpha = 1;
  int64_t extra = 1;  // by which A's rows are stored longer than they are
};

using Gemm = void(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                  const float* b, int64_t ldb, bool add, float* c, int64_t ldc);

/// Against sums in double.
inline void check_product(const Product& p, Gemm* gemm) {
  const auto [ta, tb, m, n, k, add, alpha, extra] = p;
  CAPTURE(ta);
  CAPTURE(tb);
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(add);
  std::mt19937 rng(73);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const int64_t lda = (ta ? m : k) + extra, ldb = (tb ? k : n) + 2, ldc = n + 3;
  const Row<float> a = Row<float>::random_rows(ta ? k : m, ta ? m : k, lda, rng),
                   b = Row<float>::random_rows(tb ? n : k, tb ? k : n, ldb, rng);
  Row<float> c = Row<float>::random(m * ldc, rng);
  Row<double> want(m * ldc);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < ldc; ++j) {
      double sum = 0;
      for (int64_t q = 0; j < n && q < k; ++q) {
        sum += double(ta ? a[q * lda + i] : a[i * lda + q]) * double(tb ? b[j * ldb + q] : b[q * ldb + j]);
      }
      want[i * ldc + j] = (j >= n || add ? double(c[i * ldc + j]) : 0) + alpha * sum;
      if (j < n && !add) c[i * ldc + j] = nan;  // must not be read
    }
  }
  gemm(ta, tb, m, n, k, alpha, a.data(), lda, b.data(), ldb, add, c.data(), ldc);
  CHECK(worst_error(c, want, std::sqrt(double(k) + 1)) < tolerance<float>());
  CHECK(c.intact());
}

}  // namespace kernel_test
