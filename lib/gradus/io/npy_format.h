#pragma once

#include <string>
#include <string_view>

#include <gradus/io/npy.h>
#include <gradus/io/replacement.h>
#include <gradus/tensor.h>

// Internal: the npy and npz formats on bytes in memory. Not installed.

namespace gradus::io {

/// The array as a .npy file.
std::string npy_bytes(const Tensor& t, const Complain& complain);
/// The array in a .npy file.
Tensor npy_tensor(std::string_view bytes, const Complain& complain);

/// The arrays as a .npz file.
std::string npz_bytes(const NamedTensors& tensors, const Complain& complain);
/// The arrays in a .npz file.
NamedTensors npz_tensors(std::string_view bytes, const Complain& complain);

/// Complains with the file's name, in an Error of "npy" or "npz".
Complain complain_about(const char* format, const std::string& path);
std::string read_file(const std::string& path, const Complain& complain);

}  // namespace gradus::io
