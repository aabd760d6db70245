#pragma once

#include <algorithm>
#include <cstdint>

// What gemm uses in f32 where it is faster than the BLAS. Both take gemm's arguments:
// C[m,n] = alpha op(A) op(B), or C += that with `add`. Blocks depend on the sizes alone, so the same numbers
// always give the same bits. Buffers come from the caching allocator.

namespace gradus::kernels {

/// By blocks that stay in the caches, with the tiles of packed_gemm. The BLAS's product without AVX-512.
void block_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc);
/// Whether block_gemm beats the BLAS for these sizes on this CPU: with AVX-512, unless a side is short or
/// the whole small.
bool use_block_gemm(int64_t m, int64_t n, int64_t k);

/// On AMX (see amx.h), which use_amx_gemm must have allowed. Blocks in which a number is infinite or NaN go to
/// block_gemm.
void amx_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
              int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc);
/// Whether this CPU has AMX, and amx_gemm beats block_gemm and the BLAS for these sizes.
bool use_amx_gemm(int64_t m, int64_t n, int64_t k);

/// The next of the even parts of n of at most `most`, each but the last a multiple of `unit`.
inline int64_t next_part(int64_t n, int64_t most, int64_t unit) {
  const int64_t parts = (n + most - 1) / most, size = (n + parts - 1) / parts;
  return std::min(n, (size + unit - 1) / unit * unit);
}

}  // namespace gradus::kernels
