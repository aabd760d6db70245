#include <gradus/kernels/layer_norm.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

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
      kernels::layer_norm(rows, n, x.data(), gamma.data(), beta.data(), T(eps), y.data(), stats.data());
      kernels::layer_norm_backward(rows, n, x.data(), gamma.data(), stats.data(), dy.data(), dx.data(),
                                   dgamma.data(), dbeta.data());
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
    kernels::layer_norm(1, n, x.data(), gamma.data(), beta.data(), 0, y.data(), stats.data());
    const double deviation = std::sqrt(double(n * n - 1) / 12);
    for (int64_t i = 0; i < n; ++i) CHECK(close(y[i], double(i - 16) / deviation, 1e-5));
  });
}
