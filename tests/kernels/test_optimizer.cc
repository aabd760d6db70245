#include <gradus/kernels/optimizer.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

TEST_CASE_TEMPLATE("sum_squares: in double, every length", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(41);
    for (const int64_t n : {0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 70, 100003}) {
      CAPTURE(n);
      const Row<T> x = Row<T>::random(n, rng);
      CHECK(close(kernels::sum_squares(x.data(), n), inner(x, x), 1e-12));
      CHECK(kernels::sum_squares(x.data(), n) == kernels::sum_squares(x.data(), n));
    }
    const std::vector<float> large(5, 1e30f);  // the squares do not fit f32
    CHECK(close(kernels::sum_squares(large.data(), 5), 5e60, 1e-6));
  });
}

TEST_CASE_TEMPLATE("adam: against a plain loop, three steps", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(42);
    for (const int64_t n : {0, 1, 3, 5, 16, 17, 40, 70}) {
      for (const double decay : {0.0, 0.01}) {
        CAPTURE(n);
        CAPTURE(decay);
        Row<T> p = Row<T>::random(n, rng), m(n), v(n);
        Row<double> p2(n), m2(n), v2(n);
        for (int64_t i = 0; i < n; ++i) p2[i] = p[i];
        for (int t = 1; t <= 3; ++t) {
          const Row<T> g = Row<T>::random(n, rng);
          const double correction1 = 1 - std::pow(0.9, t), correction2 = 1 - std::pow(0.98, t);
          const kernels::AdamStep step{0.01, 0.9, 0.98, 1e-9, correction1, correction2, 0.5, decay};
          kernels::adam(step, g.data(), p.data(), m.data(), v.data(), n);
          for (int64_t i = 0; i < n; ++i) {
            const double grad = 0.5 * g[i] + decay * p2[i];
            m2[i] = 0.9 * m2[i] + (1 - 0.9) * grad;
            v2[i] = 0.98 * v2[i] + (1 - 0.98) * grad * grad;
            p2[i] -= 0.01 * (m2[i] / step.correction1) / (std::sqrt(v2[i] / step.correction2) + 1e-9);
          }
        }
        CHECK(worst_error(p, p2) < tolerance<T>());
        CHECK(worst_error(m, m2) < tolerance<T>());
        CHECK(worst_error(v, v2) < tolerance<T>());
        CHECK((p.intact() && m.intact() && v.intact()));
      }
    }
  });
}

TEST_CASE("adam: as it is written, whatever the setting and the numbers") {
  for (double s = 0.05; s < 1; s += 0.1)
    for (int i = 0; i < 40; ++i) {
      CAPTURE(s);
      CAPTURE(i);
      double g = 0.07 * i - 1.3, p = 1.1 - 0.05 * i, m = 0.06 * i - 1, v = 0.05 * i, p2 = p, m2 = m, v2 = v;
      kernels::adam({s, s, 1 - s, s, 0.5 + s, 1.5 - s, s, s, s / 2}, &g, &p, &m, &v, 1);
      const double grad = s * g + s * p2;
      m2 = s * m2 + (1 - s) * grad;
      v2 = (1 - s) * v2 + s * grad * grad;
      p2 = (1 - s / 2) * p2 - s * (m2 / (0.5 + s)) / (std::sqrt(v2 / (1.5 - s)) + s);
      CHECK(std::abs(p - p2) < 1e-12);
      CHECK(std::abs(m - m2) < 1e-12);
      CHECK(std::abs(v - v2) < 1e-12);
    }
}

TEST_CASE_TEMPLATE("adam: what never had a gradient does not move, whatever eps", T, float, double) {
  on_every_target([] {
    for (const double eps : {1e-8, 0.0}) {
      std::vector<T> g(19, T(0)), p(19, T(1.5)), m(19, T(0)), v(19, T(0));
      g[4] = T(0.1);
      kernels::adam({0.1, 0.9, 0.999, eps, 0.1, 0.001}, g.data(), p.data(), m.data(), v.data(), 19);
      for (size_t i = 0; i < 19; ++i) {
        if (i != 4) CHECK(p[i] == T(1.5));
      }
      CHECK(close(p[4], 1.4, 1e-5));
    }
  });
}
