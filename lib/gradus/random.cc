#include <gradus/random.h>

#include <cmath>
#include <numbers>

namespace gradus {

std::array<uint32_t, 4> philox(uint64_t seed, uint64_t stream, uint64_t counter) {
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                               static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53} * x[0], p1 = uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(p0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return x;
}

uint32_t Rng::next_u32() {
  uint64_t block = position_ / 4;
  if (block != cached_block_) {
    block_ = philox(seed_, stream_, block);
    cached_block_ = block;
  }
  return block_[position_++ % 4];
}

uint64_t Rng::next_u64() {
  uint64_t high = next_u32();
  return high << 32 | next_u32();
}

double Rng::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

double Rng::normal() {
  double u = 1.0 - uniform();  // (0, 1]: the logarithm is finite
  double v = uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

int64_t Rng::below(int64_t n) {
  if (n <= 0) fail("below", "n must be positive: " + std::to_string(n));
  uint64_t range = static_cast<uint64_t>(n);
  uint64_t limit = ~uint64_t{0} / range * range;  // beyond it the remainder would be biased
  uint64_t word;
  do word = next_u64();
  while (word >= limit);
  return static_cast<int64_t>(word % range);
}

}  // namespace gradus
