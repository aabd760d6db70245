#pragma once

#include <cstdint>

#include <gradus/random.h>

// Random numbers by the million, each to the bit the one that the generator would have drawn by itself.

namespace gradus::kernels {

/// Blocks first .. first + blocks - 1 of a stream, four words each, as philox() gives them one by one.
void philox_words(uint64_t seed, uint64_t stream, uint64_t first, int64_t blocks, uint32_t* words);

/// p[i] = rng.uniform(low, high), for i = 0 .. n-1 in turn.
void fill_uniform(Rng& rng, double low, double high, float* p, int64_t n);
void fill_uniform(Rng& rng, double low, double high, double* p, int64_t n);
/// p[i] = mean + deviation * rng.normal().
void fill_normal(Rng& rng, double mean, double deviation, float* p, int64_t n);
void fill_normal(Rng& rng, double mean, double deviation, double* p, int64_t n);

}  // namespace gradus::kernels
