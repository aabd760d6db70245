#pragma once

// Which instruction sets the kernels are compiled for; to be included before anything of Highway's. One more target
// costs every kernel file a quarter of its compile time, so only these: AVX-512, AVX2, SSE4 and plain C++ on x86, and
// what Highway finds elsewhere.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
