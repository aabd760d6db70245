#pragma once

#include <cstdint>

// Matrix products on row-major arrays. This file, packed_gemm.h, small_gemm.h and int8.h are the doors of
// products/: nothing outside includes any other.

namespace gradus::kernels {

/// C[m,n] = alpha op(A) op(B) + beta C, op(A) [m,k], op(B) [k,n], all row-major; `lda`, `ldb`, `ldc` are the
/// lengths of a stored row. With beta = 0 the old C is not read (NaN there does not survive).
/// m = 1 or n = 1 go to gemv: sgemm with one row is several times slower (it packs the weights first). In f32
/// most other sizes go to block_gemm on a CPU with AVX-512, which with `full` does not mind bf16_products.
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc, bool full = false);
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a,
          int64_t lda, const double* b, int64_t ldb, double beta, double* c, int64_t ldc, bool full = false);

/// The same by the BLAS, whatever the sizes: what our own products are tested and measured against.
void blas_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
               int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

/// The name of the OpenBLAS kernels in use ("SkylakeX", "Haswell", ...). The first call of this or of gemm
/// sees to it that they fit the CPU, see blas_core.cc.
const char* blas_core();

/// The core that fits this CPU's instruction set: "SkylakeX" with AVX-512, "Haswell" with AVX2 and FMA,
/// otherwise "" (OpenBLAS's own choice stands).
const char* blas_core_for_this_cpu();

/// From now on, in all threads, block_gemm rounds to bfloat16. Only for a CPU that is ready for it, with
/// AVX512_BF16. AMX, which is no slower, goes on in f32.
void bf16_products(bool on);
bool bf16_ready();

/// Whether products may go to AMX: this CPU has it, the system lets this process use it (the first call asks
/// for permission), and neither `GRADUS_AMX=0` in the environment nor amx_allow(false) says no.
bool amx_ready();
/// For tests and comparisons: whether products may go to AMX where there is one.
void amx_allow(bool on);

}  // namespace gradus::kernels
