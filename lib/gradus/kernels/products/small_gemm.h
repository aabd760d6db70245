#pragma once

#include <cstdint>

namespace gradus::kernels {

/// C[m, n] = alpha A B, or C += alpha A B with `add`, for matrices of a few dozen rows and columns: nothing
/// is packed and nothing allocated, which at such sizes is most of what a BLAS call costs (attention makes
/// several products for each head and sentence). A's entry (i, p) stands at a[i row_a + p column_a], so that
/// a transposed A is the same memory with the strides exchanged. The rows of B [k, n] are `ldb` apart, those
/// of C `ldc`. C must not overlap A or B.
template <class T>
void small_gemm(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t row_a, int64_t column_a,
                const T* b, int64_t ldb, bool add, T* c, int64_t ldc);

}  // namespace gradus::kernels
