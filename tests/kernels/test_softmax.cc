#include <gradus/kernels/softmax.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

namespace {

template <class T>
Row<double> plain_softmax(const Row<T>& x, const std::vector<uint8_t>& mask, int64_t rows, int64_t n) {
  Row<double> y(rows * n);
  for (int64_t r = 0; r < rows; ++r) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i = r * n; i < (r + 1) * n; ++i) {
      if (mask.empty() || mask[size_t(i)]) top = std::max(top, double(x[i]));
    }
    for (int64_t i = r * n; i < (r + 1) * n; ++i) {
      y[i] = mask.empty() || mask[size_t(i)] ? std::exp(x[i] - top) : 0;
      sum += y[i];
    }
    for (int64_t i = r * n; i < (r + 1) * n; ++i) y[i] = sum > 0 ? y[i] / sum : 0;
  }
  return y;
}

}  // namespace

TEST_CASE_TEMPLATE("softmax: every length, with and without a mask, in place", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(21);
    for (int64_t n = 1; n <= 70; n += n < 40 ? 1 : 15) {
      CAPTURE(n);
      const int64_t rows = 4;
      Row<T> x = Row<T>::random(rows * n, rng, 3), y(rows * n);
      kernels::softmax_rows(x.data(), nullptr, y.data(), rows, n);
      CHECK(worst_error(y, plain_softmax(x, {}, rows, n), 1e-3) < tolerance<T>());
      CHECK(y.intact());

      std::vector<uint8_t> mask(size_t(rows * n));
      for (int64_t i = 0; i < rows * n; ++i) {
        // row 1 wholly masked, row 2 not at all
        mask[size_t(i)] = i / n == 1 ? 0 : i / n == 2 ? 1 : rng() % 2;
        if (!mask[size_t(i)]) {
          x[i] = i % 2 ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
        }
      }
      const Row<double> want = plain_softmax(x, mask, rows, n);
      kernels::softmax_rows(x.data(), mask.data(), x.data(), rows, n);
      CHECK(worst_error(x, want, 1e-3) < tolerance<T>());
      for (int64_t i = 0; i < rows * n; ++i) {
        if (!mask[size_t(i)]) CHECK(x[i] == 0);
      }
      CHECK(x.intact());
    }
  });
}

TEST_CASE_TEMPLATE("softmax: large scores do not overflow", T, float, double) {
  on_every_target([] {
    const std::vector<T> x{927, 397, 148, 929};
    std::vector<T> y(4);
    kernels::softmax_rows(x.data(), nullptr, y.data(), 1, 4);
    CHECK(close(y[0], 0.119202922022118, tolerance<T>()));
    CHECK(y[1] < 1e-200);
    CHECK(y[2] < 1e-200);
    CHECK(close(y[3], 0.880797077977883, tolerance<T>()));
  });
}

TEST_CASE_TEMPLATE("softmax: what is not a number stays visible in its own row", T, float, double) {
  on_every_target([] {
    const T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
    std::vector<T> x{1,         nan,       2,         1,         2, 3, nan,       nan, nan,
                     -infinity, -infinity, -infinity, -infinity, 0, 0, -infinity, nan, -infinity};
    std::vector<uint8_t> mask(18, 1);
    mask[2] = mask[17] = 0;
    kernels::softmax_rows(x.data(), mask.data(), x.data(), 6, 3);
    CHECK(std::isnan(x[0]));
    CHECK(std::isnan(x[1]));
    CHECK(x[2] == 0);
    CHECK(close(x[3] + x[4] + x[5], 1, 1e-6));
    for (size_t i = 6; i < 9; ++i) CHECK(std::isnan(x[i]));
    for (size_t i = 9; i < 12; ++i) CHECK(x[i] == 0);
    CHECK(x[12] == 0);
    CHECK(x[13] == T(0.5));
    CHECK(std::isnan(x[15]));
    CHECK(std::isnan(x[16]));
    CHECK(x[17] == 0);
  });
}

TEST_CASE_TEMPLATE("softmax backward: the Jacobian, and NaN at masked places left out", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(22);
    for (const int64_t n : {1, 2, 3, 5, 16, 17, 33, 64, 70}) {
      CAPTURE(n);
      const int64_t rows = 3;
      const Row<T> x = Row<T>::random(rows * n, rng);
      std::vector<uint8_t> mask(size_t(rows * n), 1);
      for (int64_t i = 0; i < n; ++i) mask[size_t(i)] = i % 3 != 1;
      Row<T> y(rows * n), dy = Row<T>::random(rows * n, rng);
      kernels::softmax_rows(x.data(), mask.data(), y.data(), rows, n);
      for (int64_t i = 0; i < n; ++i) {
        if (!mask[size_t(i)]) dy[i] = std::numeric_limits<T>::quiet_NaN();
      }
      Row<double> want(rows * n);
      for (int64_t r = 0; r < rows; ++r) {
        double mean = 0;
        for (int64_t i = r * n; i < (r + 1) * n; ++i) {
          mean += mask[size_t(i)] ? double(y[i]) * double(dy[i]) : 0;
        }
        for (int64_t i = r * n; i < (r + 1) * n; ++i) want[i] = mask[size_t(i)] ? y[i] * (dy[i] - mean) : 0;
      }
      kernels::softmax_rows_backward(y.data(), dy.data(), dy.data(), rows, n);
      CHECK(worst_error(dy, want, 0.1) < tolerance<T>() * 2);
      CHECK(dy.intact());
    }
  });
}
