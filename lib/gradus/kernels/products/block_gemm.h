#pragma once

#include <cstdint>

namespace gradus::kernels {

/// C[m,n] = alpha op(A) op(B), or C += that with `add`: gemm's arguments, computed by blocks that stay in the
/// caches with the tiles of packed_gemm. What gemm uses in f32 where it is the faster one, see use_block_gemm.
/// Blocks depend on the sizes alone, so the same numbers always give the same bits. Takes its buffers from the
/// caching allocator. The BLAS's product on a CPU without AVX-512.
void block_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc);

/// Whether block_gemm beats the BLAS for these sizes on this CPU: with AVX-512, unless a side is short or
/// the whole small.
bool use_block_gemm(int64_t m, int64_t n, int64_t k);

}  // namespace gradus::kernels
