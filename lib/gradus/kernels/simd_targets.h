#pragma once

// Which instruction sets the kernels are compiled for; to be included before anything of Highway's. One more
// target costs every kernel file a quarter of its compile time, so only these: AVX-512, AVX2 and SSE2
// on x86, and NEON on Arm (SVE vectors, whose size no compiler knows, cannot stand in arrays as
// packed_gemm.cc wants them).
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE_256 | HWY_SVE2 | HWY_SVE2_128)
