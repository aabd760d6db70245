#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

// What stands behind gemm.

namespace gradus::kernels {

/// Sees to it, once per process, that OpenBLAS runs single-threaded and on kernels that fit this CPU.
/// Thread-safe; must have returned before the first BLAS call of a thread.
/// @throws Error when there is no room for OpenBLAS's work area.
void prepare_blas();

/// Makes OpenBLAS use the kernels called `name` ("SkylakeX", "Haswell", "Prescott", ...) from now on. Returns
/// false, with the kernels in use before still in place, when this OpenBLAS has no such kernels, or cannot
/// switch. No BLAS call may be running.
bool switch_blas_core(const std::string& name);

// In f32 two products of our own, where they are faster. Both take gemm's arguments:
// C[m,n] = alpha op(A) op(B), or C += that with `add`. Blocks depend on the sizes alone, so the same numbers
// always give the same bits. Buffers come from the caching allocator.

/// By blocks that stay in the caches, with the tiles of packed_gemm. The BLAS's product without AVX-512. With
/// `bf16`, which bf16_ready() must have allowed, a and b are rounded to bfloat16 first; sums are f32.
void block_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc, bool bf16 = false);
/// Whether block_gemm beats the BLAS here: with AVX-512, unless a side is short or the whole small.
bool use_block_gemm(int64_t m, int64_t n, int64_t k);

/// On AMX (see amx.h), which use_amx_gemm must have allowed. Blocks with an infinity or NaN go to block_gemm.
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
