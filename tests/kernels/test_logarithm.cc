#include <gradus/kernels/logarithm.h>
#include <gradus/kernels/softmax.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;
using kernels::LossPart;

namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

/// Relative error allowed: as documented for f32, "a few ulp" for f64.
template <class T>
constexpr double log_bound() {
  return sizeof(T) == 4 ? 5e-7 : 2e-15;
}

template <class T>
T log_at(double x) {
  std::vector<T> in(37, static_cast<T>(x)), out(37);
  kernels::log(in.data(), out.data(), 37);
  for (const T y : out) CHECK(std::memcmp(&y, &out[0], sizeof(T)) == 0);
  return out[0];
}

template <class T>
T pow_at(double x, double e) {
  std::vector<T> in(37, static_cast<T>(x)), exponents(37, static_cast<T>(e)), one(37), each(37);
  kernels::pow(in.data(), static_cast<T>(e), one.data(), 37);
  kernels::pow(in.data(), exponents.data(), each.data(), 37);
  for (const T y : one) CHECK(std::memcmp(&y, &one[0], sizeof(T)) == 0);
  for (const T y : each) CHECK(std::memcmp(&y, &one[0], sizeof(T)) == 0);
  return one[0];
}

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double share_of(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

std::vector<int64_t> log_sizes() {
  std::vector<int64_t> sizes;
  for (int64_t n = 0; n <= 70; ++n) sizes.push_back(n);
  sizes.push_back(5003);
  return sizes;
}

}  // namespace

TEST_CASE_TEMPLATE("log against the C library", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(81);
    for (const int64_t n : log_sizes()) {
      CAPTURE(n);
      Row<T> x(n), y(n);
      std::uniform_real_distribution<double> exponent(n > 1000 ? -30 : -1, n > 1000 ? 30 : 1);
      for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(std::exp(exponent(rng)));
      kernels::log(x.data(), y.data(), n);
      double worst = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double exact = std::log(double(x[i]));
        worst = gradus::worse(worst, y[i] == exact ? 0 : std::fabs(y[i] - exact) / std::fabs(exact));
      }
      CHECK(worst < log_bound<T>());
      CHECK(y.intact());
      kernels::log(x.data(), x.data(), n);  // in place
      CHECK(x.same_bits(y));
    }
  });
}

TEST_CASE_TEMPLATE("log at the ends of the range, and next to 1", T, float, double) {
  on_every_target([] {
    CHECK(log_at<T>(1) == 0);
    CHECK(log_at<T>(0) == -kInf);
    CHECK(log_at<T>(-0.0) == -kInf);
    CHECK(log_at<T>(kInf) == kInf);
    for (const double x : {-1.0, -1e-30, -kInf, kNan}) CHECK(std::isnan(log_at<T>(x)));
    using Limits = std::numeric_limits<T>;
    for (const double x : {double(Limits::denorm_min()), double(Limits::min()) / 3, double(Limits::min()),
                           double(Limits::max()), 0.70710678, 0.70710679, 1.41421356, 1.41421357}) {
      CAPTURE(x);
      CHECK(close(log_at<T>(x), std::log(double(T(x))), log_bound<T>(), 0));
    }
    for (T away = Limits::epsilon(); away < T(0.3); away *= 3) {
      CHECK(close(log_at<T>(1 + away), std::log(double(T(1 + away))), log_bound<T>(), 0));
      CHECK(close(log_at<T>(1 - away), std::log(double(T(1 - away))), log_bound<T>(), 0));
    }
  });
}

TEST_CASE_TEMPLATE("powers against the C library", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(82);
    for (const int64_t n : log_sizes()) {
      CAPTURE(n);
      Row<T> x(n), e = Row<T>::random(n, rng, 2), each(n), one(n);
      std::uniform_real_distribution<double> exponent(-4, 4);  // f32 holds all the powers
      for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(std::exp(exponent(rng)));
      kernels::pow(x.data(), e.data(), each.data(), n);
      kernels::pow(x.data(), T(-1.5), one.data(), n);
      double worst = 0;
      for (int64_t i = 0; i < n; ++i) {
        for (const auto& [got, by] : {std::pair(each[i], double(e[i])), std::pair(one[i], -1.5)}) {
          const double exact = std::pow(double(x[i]), by);
          worst = gradus::worse(worst, std::fabs(got - exact) / exact);
        }
      }
      CHECK(worst < log_bound<T>());
      CHECK(each.intact());
      CHECK(one.intact());
      kernels::pow(x.data(), T(-1.5), x.data(), n);
      CHECK(x.same_bits(one));
    }
  });
}

TEST_CASE_TEMPLATE("powers have the special cases of std::pow", T, float, double) {
  on_every_target([] {
    for (const double x :
         {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e30, -1e30, kInf, -kInf, kNan}) {
      for (const double e :
           {0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 2.5, 1e10, -1e10, kInf, -kInf, kNan}) {
        CAPTURE(x);
        CAPTURE(e);
        const T got = pow_at<T>(x, e), want = static_cast<T>(std::pow(T(x), T(e)));
        CHECK(std::isnan(got) == std::isnan(want));
        if (std::isnan(want)) continue;
        CHECK(std::signbit(got) == std::signbit(want));
        CHECK((got == want || close(got, want, log_bound<T>(), 0)));
      }
    }
  });
}

TEST_CASE_TEMPLATE("log-softmax and its backward against plain loops", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(83);
    for (const int64_t n : {1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 70, 1003}) {
      for (const bool masked : {false, true}) {
        CAPTURE(n);
        CAPTURE(masked);
        const int64_t rows = 4;
        Row<T> x = Row<T>::random(rows * n, rng, 8), dy = Row<T>::random(rows * n, rng), y(rows * n),
               dx(rows * n);
        std::vector<uint8_t> mask(size_t(rows * n), 1);
        for (int64_t i = 0; masked && i < rows * n; ++i) mask[size_t(i)] = i < n ? 0 : uint8_t(rng() % 3 > 0);
        for (int64_t i = 0; i < rows * n; ++i)
          if (!mask[size_t(i)]) x[i] = dy[i] = static_cast<T>(kNan);  // must not get into the others
        Row<double> want(rows * n), want_dx(rows * n);
        for (int64_t r = 0; r < rows; ++r) {
          double top = -kInf, sum = 0, all = 0;
          auto each = [&](auto f) {
            for (int64_t i = r * n; i < (r + 1) * n; ++i)
              if (mask[size_t(i)]) f(i);
          };
          each([&](int64_t i) { top = std::max(top, double(x[i])); });
          each([&](int64_t i) { sum += std::exp(x[i] - top), all += dy[i]; });
          each([&](int64_t i) {
            want[i] = x[i] - top - std::log(sum);
            want_dx[i] = dy[i] - std::exp(want[i]) * all;
          });
        }
        const uint8_t* m = masked ? mask.data() : nullptr;
        kernels::log_softmax_rows(x.data(), m, y.data(), rows, n);
        CHECK(worst_error(y, want) < tolerance<T>());
        CHECK(y.intact());
        kernels::log_softmax_rows_backward(y.data(), m, dy.data(), dx.data(), rows, n);
        CHECK(worst_error(dx, want_dx, std::sqrt(double(n))) < tolerance<T>());
        CHECK(dx.intact());
        kernels::log_softmax_rows_backward(y.data(), m, dy.data(), dy.data(), rows, n);
        CHECK(dy.same_bits(dx));
        kernels::log_softmax_rows(x.data(), m, x.data(), rows, n);
        CHECK(x.same_bits(y));
      }
    }
  });
}

TEST_CASE_TEMPLATE("log-softmax: large numbers, infinities, NaN", T, float, double) {
  on_every_target([] {
    const T inf = static_cast<T>(kInf), nan = static_cast<T>(kNan);
    auto run = [](std::vector<T> x) {
      kernels::log_softmax_rows(x.data(), nullptr, x.data(), 1, int64_t(x.size()));
      return x;
    };
    CHECK(run({1000, 0, -1000}) == std::vector<T>{0, -1000, -2000});
    CHECK(run({-inf, 5}) == std::vector<T>{-inf, 0});
    for (const std::vector<T>& x : {std::vector<T>{-inf, -inf}, {inf, 0}, {1, nan, 2}})
      for (const T y : run(x)) CHECK(!(y == y));
  });
}

TEST_CASE_TEMPLATE("losses and their derivatives against plain loops", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(84);
    for (const int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 33, 70, 1003}) {
      CAPTURE(n);
      const Row<T> x = Row<T>::random(n, rng, 20);
      Row<T> t = Row<T>::random(n, rng), y(n);
      for (int64_t i = 0; i < n; ++i) t[i] = std::fabs(t[i]);
      t[0] = 0;
      auto check = [&](const char* name, auto run, auto want) {
        INFO(std::string(name));
        Row<double> exact(n);
        for (int64_t i = 0; i < n; ++i) exact[i] = want(double(x[i]), double(t[i]));
        run(y.data());
        CHECK(worst_error(y, exact) < tolerance<T>());
        CHECK(y.intact());
      };
      for (const double w : {1.0, 3.0}) {
        const T weight = static_cast<T>(w);
        auto bce = [&](LossPart part) {
          return [&, part](T* out) { kernels::bce_with_logits(part, weight, x.data(), t.data(), out, n); };
        };
        check("bce term", bce(LossPart::term),
              [=](double a, double b) { return w * b * softplus(-a) + (1 - b) * softplus(a); });
        check("bce dx", bce(LossPart::dx),
              [=](double a, double b) { return (1 - b) * share_of(a) - w * b * share_of(-a); });
        check("bce dt", bce(LossPart::dt), [=](double a, double) { return w * softplus(-a) - softplus(a); });
      }
      auto kl = [&](LossPart part) {
        return [&, part](T* out) { kernels::kl_div(part, x.data(), t.data(), out, n); };
      };
      check("kl term", kl(LossPart::term),
            [](double a, double b) { return b > 0 ? b * (std::log(b) - a) : 0; });
      check("kl dx", kl(LossPart::dx), [](double, double b) { return -b; });
      check("kl dt", kl(LossPart::dt), [](double a, double b) { return b > 0 ? std::log(b) + 1 - a : 0; });
      auto logs = [&](LossPart part) {
        return [&, part](T* out) { kernels::kl_div_of_logs(part, x.data(), t.data(), out, n); };
      };
      check("kl of logs: term", logs(LossPart::term),
            [](double a, double b) { return std::exp(b) * (b - a); });
      check("kl of logs: dx", logs(LossPart::dx), [](double, double b) { return -std::exp(b); });
      check("kl of logs: dt", logs(LossPart::dt),
            [](double a, double b) { return std::exp(b) * (b - a + 1); });
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += x[i];
      CHECK(close(kernels::sum(x.data(), n), sum, 1e-12, 1e-9));
    }
  });
}

TEST_CASE_TEMPLATE("losses at the ends: no overflow, small tails kept, NaN passed on", T, float, double) {
  on_every_target([] {
    auto bce = [](LossPart part, double x, double t) {
      const T in = static_cast<T>(x), target = static_cast<T>(t);
      T y = 9;
      kernels::bce_with_logits(part, T(1), &in, &target, &y, 1);
      return y;
    };
    CHECK(bce(LossPart::term, 1e30, 1) == 0);
    CHECK(bce(LossPart::term, -1e30, 1) == T(1e30));
    CHECK(close(bce(LossPart::term, 60, 1), std::exp(-60.0), log_bound<T>() * 2, 0));
    CHECK(close(bce(LossPart::term, 0, 1), std::log(2.0), log_bound<T>(), 0));
    CHECK(close(bce(LossPart::dx, 60, 1), -std::exp(-60.0), log_bound<T>() * 2, 0));
    CHECK(bce(LossPart::dx, -1e30, 1) == -1);
    CHECK(std::isnan(bce(LossPart::term, kNan, 1)));
    CHECK(std::isnan(bce(LossPart::dx, kNan, 1)));
    auto kl = [](LossPart part, double x, double t) {
      const T in = static_cast<T>(x), target = static_cast<T>(t);
      T y = 9;
      kernels::kl_div(part, &in, &target, &y, 1);
      return y;
    };
    for (const LossPart part : {LossPart::term, LossPart::dx, LossPart::dt}) {
      CHECK(kl(part, -kInf, 0) == 0);  // nothing is asked where the target has nothing
      CHECK(kl(part, -3, -1) == 0);
      CHECK(std::isnan(kl(part, -3, kNan)));
    }
    CHECK(kl(LossPart::term, -kInf, 0.5) == kInf);
    CHECK(std::isnan(kl(LossPart::term, kNan, 0.5)));
  });
}
