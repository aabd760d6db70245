#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace translator {

/// What is wrong with a file that a person gave us. The text is `file:line: reason`, or `file: reason` where
/// no single line is to blame (line 0).
class InputError : public std::runtime_error {
 public:
  InputError(const std::string& file, int64_t line, const std::string& reason)
      : std::runtime_error(locate(file, line) + ": " + reason) {}

  /// `file:line`, or `file` for line 0.
  static std::string locate(const std::string& file, int64_t line) {
    return line > 0 ? file + ":" + std::to_string(line) : file;
  }
};

/// The command line asks for what makes no sense; exit status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Of what runs with seed, seed + 1, ...
/// @throws UsageError where there are not `count` of them.
inline void check_seeds(uint64_t seed, int64_t count) {
  if (seed > UINT64_MAX - static_cast<uint64_t>(count - 1))
    throw UsageError("--seed " + std::to_string(seed) + ": there are no " + std::to_string(count) +
                     " seeds from there on");
}

}  // namespace translator
