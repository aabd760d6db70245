#pragma once

#include <array>
#include <cstdint>

#include <gradus/error.h>

namespace gradus {

/// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): the n-th block of four words of a
/// stream is a function of (seed, stream, n) alone. The same numbers on every platform and any number of threads.
std::array<uint32_t, 4> philox(uint64_t seed, uint64_t stream, uint64_t counter);

/// A sequence of random numbers drawn from one Philox stream.
class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t next_u32();
  uint64_t next_u64();
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Normal with mean 0 and deviation 1 (Box and Muller 1958).
  double normal();
  /// Uniform in 0 .. n-1, without bias. @throws Error "[below] n must be positive: 0".
  int64_t below(int64_t n, Caller caller = Caller::current());
  /// An independent generator: the k-th split of this seed.
  Rng split(uint64_t k) const { return Rng(seed_, stream_ * 0x9E3779B97F4A7C15ull + k + 1); }

  uint64_t seed() const { return seed_; }
  uint64_t stream() const { return stream_; }
  /// Words drawn so far; `seek` continues a saved generator.
  uint64_t position() const { return position_; }
  void seek(uint64_t position) { position_ = position; }

 private:
  uint64_t seed_, stream_, position_ = 0;
  uint64_t cached_block_ = ~uint64_t{0};
  std::array<uint32_t, 4> block_{};
};

}  // namespace gradus
