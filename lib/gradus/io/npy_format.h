#pragma once

#include <string>
#include <string_view>

#include <gradus/io/replacement.h>
#include <gradus/tensor.h>

// Internal: the npy format on bytes in memory, shared by .npy and .npz. Not installed.

namespace gradus::io {

/// The array as a .npy file.
std::string npy_bytes(const Tensor& t, const Complain& complain);
/// The array in a .npy file.
Tensor npy_tensor(std::string_view bytes, const Complain& complain);

std::string read_file(const std::string& path, const Complain& complain);

}  // namespace gradus::io
