#pragma once

#include <cstdint>

namespace translator {

/// A checksum of bytes, ids or characters, told one after another: FNV-1a of Fowler, Noll and Vo. It finds
/// damage and what is not alike, not what somebody made alike on purpose.
struct Fnv1a {
  uint64_t hash = 14695981039346656037ull;

  void mix(uint32_t unit) { hash = (hash ^ unit) * 1099511628211ull; }
};

}  // namespace translator
