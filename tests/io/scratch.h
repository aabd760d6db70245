#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include <gradus/error.h>

#include "../check.h"
#include "../scratch.h"

namespace scratch {

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

/// The text of the Error that f throws, "no error" when none.
template <class F>
std::string error_of(F&& f, const gradus::Caller& here = gradus::Caller::current()) {
  try {
    f();
  } catch (const gradus::Error& e) {
    return gradus::testing::without_own_line(e.what(), here);
  }
  return "no error";
}

}  // namespace scratch
