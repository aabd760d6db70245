#include <gradus/kernels/layer_norm.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

namespace layer_norm_test {
namespace {

// Plain loops in double: y, and with `dy` all gradients (sums begin at 1, so that writing in place of adding
// shows).
struct Plain {
  Row<double> y, dx, dgamma, dbeta;

  template <class T>
  Plain(int64_t rows, int64_t n, const Row<T>& x, const Row<T>& gamma, const Row<T>& beta, const Row<T>& dy,
        double eps)
      : y(rows * n), dx(rows * n), dgamma(n, 1), dbeta(n, 1) {
    for (int64_t r = 0; r < rows; ++r) {
      double mean = 0, variance = 0, mean_g = 0, mean_g_xh = 0;
      for (int64_t i = 0; i < n; ++i) mean += x[r * n + i] / double(n);
      for (int64_t i = 0; i < n; ++i) variance += (x[r * n + i] - mean) * (x[r * n + i] - mean) / double(n);
      const double inverse = 1 / std::sqrt(variance + eps);
      auto xh = [&](int64_t i) { return (x[r * n + i] - mean) * inverse; };
      auto g = [&](int64_t i) { return double(dy[r * n + i]) * double(gamma[i]); };
      for (int64_t i = 0; i < n; ++i) {
        y[r * n + i] = gamma[i] * xh(i) + beta[i];
        mean_g += g(i) / double(n);
        mean_g_xh += g(i) * xh(i) / double(n);
        dgamma[i] += dy[r * n + i] * xh(i);
        dbeta[i] += dy[r * n + i];
      }
      for (int64_t i = 0; i < n; ++i) dx[r * n + i] = (g(i) - mean_g - xh(i) * mean_g_xh) * inverse;
    }
  }
};

}  // namespace

TEST_CASE_TEMPLATE("layer_norm: every row length, forward and backward", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(41);
    const double eps = 1e-3;
    for (int64_t n = 1; n <= 70; n += n < 40 ? 1 : 15) {
      CAPTURE(n);
      const int64_t rows = 3;
      Row<T> x = Row<T>::random(rows * n, rng, 2), gamma = Row<T>::random(n, rng),
             beta = Row<T>::random(n, rng);
      Row<T> dy = Row<T>::random(rows * n, rng), y(rows * n), dx(rows * n), dgamma(n, T(1)), dbeta(n, T(1));
      Row<T> stats(rows * 2);
      const Plain want(rows, n, x, gamma, beta, dy, eps);
      kernels::layer_norm(rows, n, x.data(), n, gamma.data(), beta.data(), T(eps), false, y.data(), n,
                          stats.data());
      kernels::layer_norm_backward(rows, n, x.data(), n, gamma.data(), stats.data(), dy.data(), n, false,
                                   dx.data(), n, dgamma.data(), dbeta.data());
      // a short row may have a small spread, which dx is divided by
      double scale = 1;
      for (int64_t r = 0; r < rows; ++r) scale = std::max(scale, double(stats[2 * r + 1]));
      CHECK(worst_error(y, want.y, scale) < 10 * tolerance<T>());
      CHECK(worst_error(dx, want.dx, scale * scale) < 10 * tolerance<T>());
      CHECK(worst_error(dgamma, want.dgamma, scale) < 10 * tolerance<T>());
      CHECK(worst_error(dbeta, want.dbeta) < 10 * tolerance<T>());
      CHECK((y.intact() && dx.intact() && dgamma.intact() && dbeta.intact() && stats.intact()));
    }
  });
}

TEST_CASE("layer_norm: a row far from 0 and close together, in float") {
  on_every_target([] {
    const int64_t n = 33;
    Row<float> x(n), gamma(n, 1), beta(n, 0), y(n), stats(2);
    for (int64_t i = 0; i < n; ++i) x[i] = 4096 + float(i) / 1024;
    kernels::layer_norm(1, n, x.data(), n, gamma.data(), beta.data(), 0.0f, false, y.data(), n, stats.data());
    const double deviation = std::sqrt(double(n * n - 1) / 12);
    for (int64_t i = 0; i < n; ++i) CHECK(close(y[i], double(i - 16) / deviation, 1e-5));
  });
}

TEST_CASE_TEMPLATE("layer_norm: columns of wider rows, added to what is there, and in place", T, float,
                   double) {
  on_every_target([] {
    std::mt19937 rng(42);
    const int64_t rows = 3;
    for (int64_t n : {1, 5, 16, 21}) {
      CAPTURE(n);
      const int64_t ldx = n + 3, ldy = n + 1, lddy = n + 4, lddx = n + 2;
      Row<T> x = Row<T>::random(rows * n, rng, 2), gamma = Row<T>::random(n, rng),
             beta = Row<T>::random(n, rng);
      Row<T> dy = Row<T>::random(rows * n, rng), y(rows * n), dx(rows * n), stats(rows * 2);
      Row<T> dgamma(n, T(1)), dbeta(n, T(1));
      kernels::layer_norm(rows, n, x.data(), n, gamma.data(), beta.data(), T(0.5), false, y.data(), n,
                          stats.data());
      kernels::layer_norm_backward(rows, n, x.data(), n, gamma.data(), stats.data(), dy.data(), n, false,
                                   dx.data(), n, dgamma.data(), dbeta.data());

      auto widened = [&](const Row<T>& from, int64_t ld) {
        Row<T> out(rows * ld, T(7));
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t i = 0; i < n; ++i) out[r * ld + i] = from[r * n + i];
        return out;
      };
      Row<T> wide_x = widened(x, ldx), wide_dy = widened(dy, lddy), stats2(rows * 2);
      Row<T> sum(rows * ldy, T(7)), dsum(rows * lddx, T(7)), dgamma2(n, T(1)), dbeta2(n, T(1));
      kernels::layer_norm(rows, n, wide_x.data(), ldx, gamma.data(), beta.data(), T(0.5), true, sum.data(),
                          ldy, stats2.data());
      kernels::layer_norm_backward(rows, n, wide_x.data(), ldx, gamma.data(), stats2.data(), wide_dy.data(),
                                   lddy, true, dsum.data(), lddx, dgamma2.data(), dbeta2.data());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < n; ++i) {
          CHECK(close(sum[r * ldy + i], 7 + double(y[r * n + i]), tolerance<T>()));
          CHECK(close(dsum[r * lddx + i], 7 + double(dx[r * n + i]), tolerance<T>()));
        }
        for (int64_t i = n; i < ldy; ++i) CHECK(sum[r * ldy + i] == T(7));
        for (int64_t i = n; i < lddx; ++i) CHECK(dsum[r * lddx + i] == T(7));
      }
      CHECK((dgamma2.same_bits(dgamma) && dbeta2.same_bits(dbeta) && sum.intact() && dsum.intact()));

      Row<T> own = x, d = dy, dgamma3(n, T(1)), dbeta3(n, T(1));
      kernels::layer_norm(rows, n, own.data(), n, gamma.data(), beta.data(), T(0.5), false, own.data(), n,
                          stats2.data());
      kernels::layer_norm_backward(rows, n, x.data(), n, gamma.data(), stats.data(), d.data(), n, false,
                                   d.data(), n, dgamma3.data(), dbeta3.data());
      CHECK((own.same_bits(y) && d.same_bits(dx) && dgamma3.same_bits(dgamma)));
    }
  });
}

}  // namespace layer_norm_test
