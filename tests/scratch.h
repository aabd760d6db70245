#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace scratch {

/// In memory where the system has such a place: the tests flush files to disk hundreds of times.
inline std::filesystem::path fast_place() {
  std::filesystem::path shm = "/dev/shm";
  return access(shm.c_str(), W_OK) == 0 ? shm : std::filesystem::temp_directory_path();
}

/// A directory of its own for one test, whose name nobody can foresee, removed at the end.
class Directory {
 public:
  explicit Directory(const std::filesystem::path& where = fast_place()) {
    std::string pattern = (where / "gradus-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no scratch directory in " + where.string());
    path_ = pattern;
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

}  // namespace scratch
