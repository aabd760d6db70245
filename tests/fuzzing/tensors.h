#pragma once

#include <cstring>
#include <string>

#include <gradus/tensor.h>

namespace fuzzing {

/// Equal to the bit.
inline bool same(const gradus::Tensor& a, const gradus::Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0);
}

/// A .npy file put together by hand, with `bytes` of small numbers.
inline std::string npy_file(const std::string& type, const std::string& shape, size_t bytes,
                            int version = 1) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + (version == 3 ? "True" : "False") +
                       ", 'shape': " + shape + ", }\n";
  std::string out = "\x93NUMPY";
  out += {static_cast<char>(version), '\0', static_cast<char>(header.size()), '\0'};
  if (version > 1) out += std::string(2, '\0');
  return out + header + std::string(bytes, '\0');
}

}  // namespace fuzzing
