#include <gradus/kernels/products/gemm.h>

#include <gradus/error.h>
#include <gradus/kernels/products/behind_gemm.h>

#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <type_traits>

namespace gradus::kernels {
namespace {

std::atomic<bool> bf16{false};

/// BLAS counts in int.
blasint narrow(int64_t n) {
  if (n > std::numeric_limits<blasint>::max()) {
    fail("gemm", "sizes and row lengths must fit the BLAS's integer: " + std::to_string(n));
  }
  return static_cast<blasint>(n);
}

CBLAS_TRANSPOSE flag(bool trans) { return trans ? CblasTrans : CblasNoTrans; }

/// The BLAS's function for T, of those for f32 and f64.
template <class T, class F32, class F64>
auto blas_for(F32* f32, F64* f64) {
  if constexpr (std::is_same_v<T, float>)
    return f32;
  else
    return f64;
}

template <class T>
void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
             int64_t ldb, T beta, T* c, int64_t ldc) {
  if (m <= 0 || n <= 0) return;
  prepare_blas();
  if (k <= 0) {  // an empty sum: some BLAS versions return before they apply beta
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = beta == T(0) ? T(0) : beta * c[i * ldc + j];
    return;
  }
  if (m > 1 && n > 1) {
    blas_for<T>(cblas_sgemm, cblas_dgemm)(CblasRowMajor, flag(ta), flag(tb), narrow(m), narrow(n), narrow(k),
                                          alpha, a, narrow(lda), b, narrow(ldb), beta, c, narrow(ldc));
    return;
  }
  if (beta == T(0)) {  // gemv may multiply the old y by 0, and NaN would stay
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, T(0));
    beta = T(1);
  }
  const auto gemv = blas_for<T>(cblas_sgemv, cblas_dgemv);
  if (m == 1) {  // c = op(B)^T a: B is stored [k, n], or [n, k] when transposed
    const blasint step = ta ? narrow(lda) : 1;
    gemv(CblasRowMajor, flag(!tb), narrow(tb ? n : k), narrow(tb ? k : n), alpha, b, narrow(ldb), a, step,
         beta, c, 1);
  } else {  // c = op(A) b: A is stored [m, k], or [k, m] when transposed
    const blasint step = tb ? 1 : narrow(ldb);
    gemv(CblasRowMajor, flag(ta), narrow(ta ? k : m), narrow(ta ? m : k), alpha, a, narrow(lda), b, step,
         beta, c, narrow(ldc));
  }
}

}  // namespace

void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc, bool full) {
  const bool plain = beta == 0 || beta == 1;
  if (plain && use_amx_gemm(m, n, k))
    amx_gemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta == 1, c, ldc);
  else if (plain && use_block_gemm(m, n, k))
    block_gemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta == 1, c, ldc, bf16 && !full);
  else
    product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void bf16_products(bool on) { bf16 = on; }
void blas_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
               int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a,
          int64_t lda, const double* b, int64_t ldb, double beta, double* c, int64_t ldc, bool) {
  product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace gradus::kernels
