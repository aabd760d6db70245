#pragma once

#include <bit>
#include <cstdint>

// Internal: half precision, which files may hold. Not installed.

namespace gradus::io {

/// IEEE 754 binary16 to float, exactly.
inline float from_half(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, exponent = h >> 10 & 0x1F, fraction = h & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: fraction times 2^-24
    float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -value : value;
  }
  uint32_t wide = exponent == 31 ? 0xFF : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

}  // namespace gradus::io
