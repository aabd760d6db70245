#include <gradus/kernels/products/gemm.h>

#include <gradus/error.h>
#include <gradus/kernels/products/amx_gemm.h>
#include <gradus/kernels/products/blas_core.h>
#include <gradus/kernels/products/block_gemm.h>

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <string>

namespace gradus::kernels {
namespace {

/// BLAS counts in int.
blasint narrow(int64_t n) {
  if (n > std::numeric_limits<blasint>::max()) {
    fail("gemm", "sizes and row lengths must fit the BLAS's integer: " + std::to_string(n));
  }
  return static_cast<blasint>(n);
}

CBLAS_TRANSPOSE flag(bool trans) { return trans ? CblasTrans : CblasNoTrans; }

void call_blas(bool ta, bool tb, blasint m, blasint n, blasint k, float alpha, const float* a, blasint lda,
               const float* b, blasint ldb, float beta, float* c, blasint ldc) {
  cblas_sgemm(CblasRowMajor, flag(ta), flag(tb), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void call_blas(bool ta, bool tb, blasint m, blasint n, blasint k, double alpha, const double* a, blasint lda,
               const double* b, blasint ldb, double beta, double* c, blasint ldc) {
  cblas_dgemm(CblasRowMajor, flag(ta), flag(tb), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void blas_gemv(bool trans, blasint rows, blasint cols, float alpha, const float* a, blasint lda,
               const float* x, blasint incx, float beta, float* y, blasint incy) {
  cblas_sgemv(CblasRowMajor, flag(trans), rows, cols, alpha, a, lda, x, incx, beta, y, incy);
}
void blas_gemv(bool trans, blasint rows, blasint cols, double alpha, const double* a, blasint lda,
               const double* x, blasint incx, double beta, double* y, blasint incy) {
  cblas_dgemv(CblasRowMajor, flag(trans), rows, cols, alpha, a, lda, x, incx, beta, y, incy);
}

template <class T>
void clear(int64_t m, int64_t n, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, T(0));
}

template <class T>
void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
             int64_t ldb, T beta, T* c, int64_t ldc) {
  if (m <= 0 || n <= 0) return;
  prepare_blas();
  if (k <= 0) {  // an empty sum: some BLAS versions return before they apply beta
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = beta == T(0) ? T(0) : beta * c[i * ldc + j];
    }
    return;
  }
  if (m > 1 && n > 1) {
    call_blas(ta, tb, narrow(m), narrow(n), narrow(k), alpha, a, narrow(lda), b, narrow(ldb), beta, c,
              narrow(ldc));
    return;
  }
  if (beta == T(0)) {  // gemv may multiply the old y by 0, and NaN would stay
    clear(m, n, c, ldc);
    beta = T(1);
  }
  if (m == 1) {  // c = op(B)^T a: B is stored [k, n], or [n, k] when transposed
    const blasint step = ta ? narrow(lda) : 1;
    blas_gemv(!tb, narrow(tb ? n : k), narrow(tb ? k : n), alpha, b, narrow(ldb), a, step, beta, c, 1);
  } else {  // c = op(A) b: A is stored [m, k], or [k, m] when transposed
    const blasint step = tb ? 1 : narrow(ldb);
    blas_gemv(ta, narrow(ta ? k : m), narrow(ta ? m : k), alpha, a, narrow(lda), b, step, beta, c,
              narrow(ldc));
  }
}

}  // namespace

void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  const bool plain = beta == 0 || beta == 1;
  if (plain && use_amx_gemm(m, n, k)) {
    amx_gemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta == 1, c, ldc);
  } else if (plain && use_block_gemm(m, n, k)) {
    block_gemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta == 1, c, ldc);
  } else {
    product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
}
void blas_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
               int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a,
          int64_t lda, const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace gradus::kernels
