#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include "../check.h"
#include "../scratch.h"

namespace scratch {

using gradus::testing::error_of;

inline void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A safetensors file put together by hand.
inline std::string assemble(const std::string& header, const std::string& data) {
  std::string out;
  for (uint64_t n = header.size(), i = 0; i < 8; ++i) out += static_cast<char>(n >> (8 * i) & 0xFF);
  return out + header + data;
}

}  // namespace scratch
