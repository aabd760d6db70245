#include <gradus/kernels/elementwise.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

namespace {

double logistic(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

/// Relative error allowed: as documented for f32, "a few ulp" for f64.
template <class T>
constexpr double bound() {
  return sizeof(T) == 4 ? 5e-7 : 1e-15;
}

template <class T>
void check_function(const char* name, void (*f)(const T*, T*, int64_t), double (*want)(double)) {
  INFO(std::string(name));
  std::mt19937 rng(3);
  std::vector<int64_t> sizes;
  for (int64_t n = 0; n <= 70; ++n) sizes.push_back(n);
  sizes.push_back(5003);
  for (const int64_t n : sizes) {
    CAPTURE(n);
    Row<T> x = Row<T>::random(n, rng, n > 1000 ? 12 : 2), y(n);
    f(x.data(), y.data(), n);
    double worst = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double exact = want(x[i]);
      worst = gradus::worse(worst, std::fabs(y[i] - exact) / std::fabs(exact));
    }
    CHECK(worst < bound<T>());
    CHECK(y.intact());
    f(x.data(), x.data(), n);  // in place
    CHECK(x.same_bits(y));
  }
}

/// f at one point, in every lane position the same.
template <class T>
T at(void (*f)(const T*, T*, int64_t), double x) {
  std::vector<T> in(37, static_cast<T>(x)), out(37);
  f(in.data(), out.data(), 37);
  for (const T y : out) CHECK(std::memcmp(&y, &out[0], sizeof(T)) == 0);
  return out[0];
}

template <class T>
void check_against(const char* name, int64_t n, const Row<T>& got, const Row<double>& want) {
  INFO(std::string(name), " n ", n);
  CHECK(worst_error(got, want) < tolerance<T>() * std::sqrt(double(n) + 1));
  CHECK(got.intact());
}

}  // namespace

TEST_CASE_TEMPLATE("exp, tanh, sigmoid against the C library", T, float, double) {
  on_every_target([] {
    check_function<T>("exp", kernels::exp<T>, std::exp);
    check_function<T>("tanh", kernels::tanh<T>, std::tanh);
    check_function<T>("sigmoid", kernels::sigmoid<T>, logistic);
  });
}

TEST_CASE_TEMPLATE("exp, tanh, sigmoid, relu at the ends of the range", T, float, double) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  on_every_target([=] {
    CHECK(at<T>(kernels::exp<T>, 0) == 1);
    CHECK(at<T>(kernels::exp<T>, infinity) == infinity);
    CHECK(at<T>(kernels::exp<T>, -infinity) == 0);
    CHECK(std::isnan(at<T>(kernels::exp<T>, nan)));
    CHECK(at<T>(kernels::exp<T>, sizeof(T) == 4 ? 88.73 : 709.79) == infinity);
    CHECK(std::isfinite(at<T>(kernels::exp<T>, sizeof(T) == 4 ? 88.72 : 709.78)));
    CHECK(at<T>(kernels::exp<T>, sizeof(T) == 4 ? -104 : -746) == 0);
    CHECK(at<T>(kernels::exp<T>, sizeof(T) == 4 ? -103 : -745) == std::numeric_limits<T>::denorm_min());
    CHECK(at<T>(kernels::exp<T>, 1e30) == infinity);
    CHECK(at<T>(kernels::exp<T>, -1e30) == 0);

    for (const double x : {20.0, 1e10, infinity}) {
      CHECK(at<T>(kernels::tanh<T>, x) == 1);
      CHECK(at<T>(kernels::tanh<T>, -x) == -1);
    }
    CHECK(std::isnan(at<T>(kernels::tanh<T>, nan)));
    CHECK(std::signbit(at<T>(kernels::tanh<T>, -0.0)));
    for (const double x : {1e-3, 1e-6, 1e-12, 1e-30, 1e-37}) {
      const double exact = std::tanh(double(T(x)));
      CHECK(close(at<T>(kernels::tanh<T>, x), exact, bound<T>(), 0));
      CHECK(close(at<T>(kernels::tanh<T>, -x), -exact, bound<T>(), 0));
    }

    CHECK(at<T>(kernels::sigmoid<T>, 0) == T(0.5));
    CHECK(at<T>(kernels::sigmoid<T>, infinity) == 1);
    CHECK(at<T>(kernels::sigmoid<T>, 1e10) == 1);
    CHECK(at<T>(kernels::sigmoid<T>, -infinity) == 0);
    CHECK(at<T>(kernels::sigmoid<T>, -1e10) == 0);
    CHECK(std::isnan(at<T>(kernels::sigmoid<T>, nan)));
    CHECK(close(at<T>(kernels::sigmoid<T>, -80), std::exp(-80.0), bound<T>(), 0));

    for (const double x : {1e-37, 2.5, infinity}) {
      CHECK(at<T>(kernels::relu<T>, x) == T(x));
      CHECK(at<T>(kernels::relu<T>, -x) == 0);
    }
    CHECK(std::isnan(at<T>(kernels::relu<T>, nan)));
  });
}

TEST_CASE_TEMPLATE("sums, products and backward passes against plain loops", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(5);
    for (int64_t n = 0; n <= 70; n += n < 20 ? 1 : 10) {
      const Row<T> x = Row<T>::random(n, rng), y = Row<T>::random(n, rng, 0.3);
      const T a = T(0.7);
      Row<double> sum(n), scaled(n), dtanh(n), dsigmoid(n);
      double product = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double xi = x[i], yi = y[i];
        sum[i] = yi + xi;
        scaled[i] = yi + double(a) * xi;
        dtanh[i] = xi * (1 - yi * yi);
        dsigmoid[i] = xi * yi * (1 - yi);
        product += xi * yi;
      }
      Row<T> out = y;
      kernels::add_into(x.data(), out.data(), n);
      check_against("add_into", n, out, sum);
      out = y;
      kernels::axpy(a, x.data(), out.data(), n);
      check_against("axpy", n, out, scaled);
      kernels::relu(x.data(), out.data(), n);
      Row<double> positive(n);
      for (int64_t i = 0; i < n; ++i) positive[i] = std::max<double>(x[i], 0);
      check_against("relu", n, out, positive);
      out = x;
      kernels::tanh_backward(y.data(), out.data(), out.data(), n);
      check_against("tanh_backward", n, out, dtanh);
      out = x;
      kernels::sigmoid_backward(y.data(), out.data(), out.data(), n);
      check_against("sigmoid_backward", n, out, dsigmoid);
      CHECK(close(kernels::dot(x.data(), y.data(), n), product, tolerance<T>() * 10));
    }
    const Row<T> x = Row<T>::random(10007, rng), y = Row<T>::random(10007, rng);
    CHECK(close(kernels::dot(x.data(), y.data(), x.size()), inner(x, y), tolerance<T>() * 20));
  });
}

TEST_CASE_TEMPLATE("what dropout keeps is scaled, and the rest is 0, NaN and infinities too", T, float,
                   double) {
  on_every_target([] {
    std::mt19937 rng(9);
    for (int64_t n : {0, 1, 7, 16, 33, 200}) {
      std::vector<uint32_t> words(static_cast<size_t>(n));
      for (uint32_t& w : words) w = static_cast<uint32_t>(rng());
      const uint32_t threshold = n > 1 ? words[1] : 0x80000000u;  // one of them is equal
      std::vector<uint8_t> keep(static_cast<size_t>(n + 1), 7);
      kernels::keep_words(words.data(), threshold, keep.data(), n);
      CHECK(keep.back() == 7);
      Row<T> x = Row<T>::random(n, rng), y(n);
      if (n > 6) x[3] = std::numeric_limits<T>::infinity(), x[6] = std::numeric_limits<T>::quiet_NaN();
      kernels::keep_scaled(x.data(), keep.data(), T(1.25), y.data(), n);
      CHECK(y.intact());
      int64_t wrong = 0;
      for (int64_t i = 0; i < n; ++i) {
        const bool kept = words[static_cast<size_t>(i)] >= threshold;
        const T want = kept ? x[i] * T(1.25) : T(0);
        wrong += keep[static_cast<size_t>(i)] != (kept ? 1 : 0) ||
                 (std::isnan(want) ? !std::isnan(y[i]) : y[i] != want);
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE_TEMPLATE("rows: add_bias and sum_rows_into", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(6);
    for (const int64_t rows : {0, 1, 7, 8, 9, 25}) {
      for (const int64_t n : {1, 3, 16, 37}) {
        const Row<T> bias = Row<T>::random(n, rng), x = Row<T>::random(rows * n, rng);
        Row<double> biased(rows * n), sums(n);
        for (int64_t j = 0; j < n; ++j) sums[j] = bias[j];
        for (int64_t i = 0; i < rows * n; ++i) {
          biased[i] = double(x[i]) + double(bias[i % n]);
          sums[i % n] += x[i];
        }
        Row<T> out = x;
        kernels::add_bias(bias.data(), out.data(), rows, n);
        check_against("add_bias", n, out, biased);
        out = bias;
        kernels::sum_rows_into(x.data(), out.data(), rows, n);
        check_against("sum_rows_into", n, out, sums);
      }
    }
  });
}

TEST_CASE_TEMPLATE("sum_rows_into: of many rows, 8192 at a time have sums of their own", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(7);
    for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{8193, 37}, {20000, 513}}) {
      const Row<T> x = Row<T>::random(rows * n, rng), before = Row<T>::random(n, rng);
      Row<T> out = before, want = before;
      kernels::sum_rows_into(x.data(), out.data(), rows, n);
      for (int64_t r = 0; r < rows; r += 8192) {
        Row<T> block(n);
        kernels::sum_rows_into(x.data() + r * n, block.data(), std::min<int64_t>(8192, rows - r), n);
        kernels::add_into(block.data(), want.data(), n);
      }
      CHECK(out.same_bits(want));
      CHECK(out.intact());
    }
  });
}

TEST_CASE_TEMPLATE("the same numbers give the same bits wherever they stand", T, float, double) {
  std::mt19937 rng(8);
  const Row<T> x = Row<T>::random(61, rng), y = Row<T>::random(61, rng);
  const T first = kernels::dot(x.data(), y.data(), 61);
  for (size_t shift = 0; shift < 16; ++shift) {
    std::vector<T> a(80), b(80);
    std::copy(x.data(), x.data() + 61, a.begin() + long(shift));
    std::copy(y.data(), y.data() + 61, b.begin() + long(15 - shift));
    CHECK(kernels::dot(a.data() + shift, b.data() + 15 - shift, 61) == first);
  }
}
