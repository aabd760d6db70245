#pragma once

#include <array>
#include <cstdint>

#include <gradus/error.h>

namespace gradus {

/// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): the n-th block of four
/// words of a stream is a function of (seed, stream, n) alone, on every platform and any number of threads.
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
  int64_t below(int64_t n);
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

/// An Rng, and the line that the call stands on, as Input is of a Var: for what draws numbers as it is made,
/// layers above all. Made implicitly. Only for parameters: it refers to the Rng it was made of.
class RngInput {
 public:
  RngInput(Rng& rng, Caller caller = Caller::current()) : rng_(rng), caller_(caller) {}
  RngInput(const RngInput&) = delete;
  RngInput& operator=(const RngInput&) = delete;

  operator Rng&() const { return rng_; }
  Rng* operator->() const { return &rng_; }
  const Caller& caller() const { return caller_; }

 private:
  Rng& rng_;
  Caller caller_;
};

}  // namespace gradus
