#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <unistd.h>

#include <gradus/error.h>

#include "../check.h"

namespace scratch {

/// A directory of its own for one test, removed at the end.
class Directory {
 public:
  Directory() {
    // In memory where the system has such a place: the tests flush files to disk hundreds of times.
    std::filesystem::path shm = "/dev/shm", where = access(shm.c_str(), W_OK) == 0
                                                        ? shm
                                                        : std::filesystem::temp_directory_path();
    std::string pattern = (where / "gradus-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

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
