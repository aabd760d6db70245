#pragma once

#include <string>

#include <gradus/tensor.h>

// NumPy's .npy files, one array each, for data that goes to and from Python.

namespace gradus {

/// Writes `t` as numpy.save would, byte for byte (format 1.0): f32, f64, i32, u8; by way of `path`.tmp.
/// @throws Error "[npy] data.npy: ..." when it cannot be written, or the tensor is undefined.
void save_npy(const std::string& path, const Tensor& t);

/// Reads formats 1.0 to 3.0, either byte order, C or Fortran order (made row-major). Types f4, f8, i4, u1 as
/// they are; f2 becomes f32; b1 u8; i1, i2, u2 and, where all values fit, i8, u4 and u8 become i32.
/// @throws Error "[npy] data.npy: ..." for a file that is damaged, has another type, more than 6 axes, fields
/// or Python objects (nothing is ever unpickled).
Tensor load_npy(const std::string& path);

}  // namespace gradus
