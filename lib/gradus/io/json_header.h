#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// The JSON header of a safetensors file, and nothing else of JSON.

namespace gradus::io {

struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  /// Its data_offsets.
  int64_t begin = 0, end = 0;
};

struct Header {
  /// As they stand in the file.
  std::vector<HeaderEntry> tensors;
  std::map<std::string, std::string> metadata;
};

/// Strict: exactly an object of {dtype, shape, data_offsets} objects, one optional "__metadata__" object of
/// strings, and white space around it. Does not recurse, so nesting cannot exhaust the stack.
/// @throws std::string what is wrong, and where: "the header is not valid JSON: expected ':' at byte 17".
Header parse_header(std::string_view text);

/// The same text again.
std::string write_header(const Header& header);

/// True for well-formed UTF-8 (no overlong forms, no surrogates).
bool valid_utf8(std::string_view text);

}  // namespace gradus::io
