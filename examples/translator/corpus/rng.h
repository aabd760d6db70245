#pragma once

#include <cstdint>

namespace translator::corpus {

/// SplitMix64 (Steele, Lea, Flood 2014): a corpus must come out the same on every platform, which the
/// distributions of <random> do not promise.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  /// A number from 0 to n - 1; n small enough that the bias of the multiplication does not matter.
  int below(int n) { return static_cast<int>(((next() >> 32) * static_cast<uint64_t>(n)) >> 32); }

  /// True in `percent` of 100 cases.
  bool chance(int percent) { return below(100) < percent; }

 private:
  uint64_t state_;
};

}  // namespace translator::corpus
