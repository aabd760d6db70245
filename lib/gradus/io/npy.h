#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gradus/tensor.h>

// NumPy's files, for data that goes to and from Python: .npy is one array, .npz a zip archive of them.

namespace gradus {

/// Writes `t` as numpy.save would, byte for byte (format 1.0): f32, f64, i32, u8; by way of `path`.tmp.
/// @throws Error "[npy] data.npy: ..." when it cannot be written, or the tensor is undefined.
void save_npy(const std::string& path, const Tensor& t);

/// Reads formats 1.0 to 3.0, either byte order, C or Fortran order (made row-major). Types f4, f8, i4, u1 as
/// they are; f2 becomes f32; b1 u8; i1, i2, u2 and, where all values fit, i8, u4 and u8 become i32.
/// @throws Error "[npy] data.npy: ..." for a file that is damaged, has another type, more than 6 axes, fields
/// or Python objects (nothing is ever unpickled).
Tensor load_npy(const std::string& path);

/// Arrays under names, in the order of the archive; numpy.load(path)["x"] is the one named "x".
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Writes an archive as numpy.savez makes them: not compressed, up to 4 GB.
/// @throws Error "[npz] data.npz: ..." as save_npy, or for a name that occurs twice or is empty.
void save_npz(const std::string& path, const NamedTensors& tensors);

/// Reads what numpy.savez writes; checksums are verified.
/// @throws Error "[npz] data.npz: ..." as load_npy, and for a compressed entry (numpy.savez_compressed).
NamedTensors load_npz(const std::string& path);

}  // namespace gradus
