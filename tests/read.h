#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "quick_doctest.h"

/// All of a file, which must be there.
inline std::string read_whole(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}
