#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gradus/tensor.h>

namespace gradus {

struct SafetensorsFile {
  /// In the order of their offsets in the file.
  std::vector<std::pair<std::string, Tensor>> tensors;
  /// The header's __metadata__.
  std::map<std::string, std::string> metadata;
};

/// Writes the safetensors format: 8 bytes little-endian header length, JSON header {name: {dtype, shape,
/// data_offsets}}, then the numbers. F32, F64, I32 and U8; wider types come first so that all are aligned,
/// otherwise the order is kept. A crash at any moment leaves the previous file whole (see io::Replacement).
/// @throws Error "[safetensors] PATH: ..." when it cannot be written, or a tensor is undefined, a name is not
/// UTF-8, is "__metadata__" or occurs twice.
void save_safetensors(const std::string& path, const SafetensorsFile& file);

/// Reads it. Types F32, F64, I32, U8, and I64, F16, BF16 converted to I32 resp. F32.
/// @throws Error "[safetensors] model.safetensors: ..." for a file that is truncated, has a header too
/// large or no JSON, offsets that overlap, have gaps or do not fit the shape, an unknown dtype, a name twice.
SafetensorsFile load_safetensors(const std::string& path);

}  // namespace gradus
