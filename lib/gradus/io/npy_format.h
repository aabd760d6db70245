#pragma once

#include <string>
#include <string_view>

#include <gradus/io/replacement.h>
#include <gradus/tensor.h>

// Internal: the npy format on bytes in memory. Not installed.

namespace gradus::io {

/// The array as a .npy file.
std::string npy_bytes(const Tensor& t, const Complain& complain);
/// The array in a .npy file.
Tensor npy_tensor(std::string_view bytes, const Complain& complain);

}  // namespace gradus::io
