#include <gradus/kernels/products/behind_gemm.h>
#include <gradus/kernels/products/gemm.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

namespace {

template <class T>
void check_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, T beta) {
  CAPTURE(ta);
  CAPTURE(tb);
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(alpha);
  CAPTURE(beta);
  std::mt19937 rng(7);
  const int64_t lda = (ta ? m : k) + 2, ldb = (tb ? k : n) + 3, ldc = n + 1;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const Row<T> a = Row<T>::random_rows(ta ? k : m, ta ? m : k, lda, rng),
               b = Row<T>::random_rows(tb ? n : k, tb ? k : n, ldb, rng);
  Row<T> c = Row<T>::random(m * ldc, rng);
  Row<double> want(m * ldc);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < ldc; ++j) {
      if (j >= n) {
        want[i * ldc + j] = c[i * ldc + j];
        continue;
      }
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += double(ta ? a[l * lda + i] : a[i * lda + l]) * double(tb ? b[j * ldb + l] : b[l * ldb + j]);
      }
      want[i * ldc + j] = alpha * sum + (beta == T(0) ? 0 : beta * double(c[i * ldc + j]));
      if (beta == T(0)) c[i * ldc + j] = nan;  // must not be read
    }
  }
  kernels::gemm(ta, tb, m, n, k, alpha, a.data(), lda, b.data(), ldb, beta, c.data(), ldc);
  CHECK(worst_error(c, want) < tolerance<T>() * 10);
  CHECK(c.intact());
}

double product_error(int64_t m, int64_t n, int64_t k) {
  std::mt19937 rng(11);
  const Row<float> a = Row<float>::random(m * k, rng), b = Row<float>::random(k * n, rng);
  Row<float> c(m * n);
  Row<double> want(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t j = 0; j < n; ++j) want[i * n + j] += double(a[i * k + l]) * double(b[l * n + j]);
    }
  }
  kernels::gemm(false, false, m, n, k, 1.0f, a.data(), k, b.data(), n, 0.0f, c.data(), n);
  return worst_error(c, want);
}

}  // namespace

TEST_CASE_TEMPLATE("gemm: transposes, strides, alpha, beta, vectors and empty sums", T, float, double) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const int64_t m : {1, 2, 5, 17}) {
        for (const int64_t n : {1, 3, 8, 33}) {
          for (const int64_t k : {0, 1, 7, 40}) {
            check_gemm<T>(ta, tb, m, n, k, T(1), T(0));
            check_gemm<T>(ta, tb, m, n, k, T(0.5), T(1));
            check_gemm<T>(ta, tb, m, n, k, T(2), T(-0.25));
          }
        }
      }
    }
  }
}

TEST_CASE("gemm: nothing to write is nothing done") {
  float c = 3;
  kernels::gemm(false, false, 0, 1, 4, 1.0f, nullptr, 4, nullptr, 1, 0.0f, &c, 1);
  kernels::gemm(false, false, 1, 0, 4, 1.0f, nullptr, 4, nullptr, 1, 0.0f, &c, 1);
  CHECK(c == 3);
}

TEST_CASE("gemm: sizes that no BLAS integer holds are refused") {
  float x = 0;
  CHECK_THROWS_WITH(kernels::gemm(false, false, 2, 2, int64_t(1) << 40, 1.0f, &x, 1, &x, 1, 0.0f, &x, 1),
                    "[gemm] sizes and row lengths must fit the BLAS's integer: 1099511627776");
}

TEST_CASE("blas core: fits the instruction set of this CPU") {
  const std::string best = kernels::blas_core_for_this_cpu();
#if defined(__x86_64__)
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  CHECK(best == (avx512 ? "SkylakeX" : avx2 ? "Haswell" : ""));
  if (std::getenv("OPENBLAS_CORETYPE") == nullptr && avx2) {
    const std::string core = kernels::blas_core();
    CHECK(core != "Prescott");
    if (avx512) CHECK(core != "Haswell");
  }
#else
  CHECK(best == "");
#endif
}

TEST_CASE("blas core: switching works in a running process, and products stay right") {
  const std::string first = kernels::blas_core();
  CHECK(product_error(60, 130, 70) < 2e-5);
  CHECK_FALSE(kernels::switch_blas_core("NoSuchCore"));
  CHECK(kernels::blas_core() == first);
  if (kernels::switch_blas_core("Prescott")) {
    CHECK(std::string(kernels::blas_core()) == "Prescott");
    for (int i = 0; i < 5; ++i) {
      CHECK(product_error(60 + i, 130, 70) < 2e-5);
      REQUIRE(kernels::switch_blas_core(first));
      CHECK(kernels::blas_core() == first);
      CHECK(product_error(60 + i, 130, 70) < 2e-5);
      CHECK(product_error(300, 200, 400) < 1e-4);
      REQUIRE(kernels::switch_blas_core("Prescott"));
    }
    REQUIRE(kernels::switch_blas_core(first));
  }
  CHECK(kernels::blas_core() == first);
  CHECK(product_error(60, 130, 70) < 2e-5);
}

TEST_CASE("blas core: a switch leaves the user's variable as it was") {
  const char* before = std::getenv("OPENBLAS_CORETYPE");
  const std::string kept = before ? before : "(unset)";
  const std::string core = kernels::blas_core();
  kernels::switch_blas_core(core);
  const char* after = std::getenv("OPENBLAS_CORETYPE");
  CHECK((after ? after : "(unset)") == kept);
}

TEST_CASE("gemm: threads at once, each with its own product") {
  std::vector<double> errors(4, 1);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < errors.size(); ++i) {
    threads.emplace_back([&errors, i] {
      double worst = 0;
      for (int repeat = 0; repeat < 5; ++repeat) {
        worst = gradus::worse(worst, product_error(50, 90 + int64_t(i), 110));
      }
      errors[i] = worst;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const double error : errors) CHECK(error < 5e-5);
}
