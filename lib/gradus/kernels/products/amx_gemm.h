#pragma once

#include <cstdint>

namespace gradus::kernels {

/// C[m,n] = alpha op(A) op(B), or C += that with `add`: gemm's arguments, in float, on AMX (see amx.h), which
/// use_amx_gemm must have allowed. Blocks in which a number is infinite or NaN go to block_gemm. Blocks depend
/// on the sizes alone. Takes its buffers from the caching allocator.
void amx_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
              int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc);

/// Whether this CPU has AMX, and amx_gemm beats block_gemm and the BLAS for these sizes.
bool use_amx_gemm(int64_t m, int64_t n, int64_t k);

}  // namespace gradus::kernels
