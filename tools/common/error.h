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

}  // namespace translator
