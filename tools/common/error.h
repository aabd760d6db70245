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
      : std::runtime_error(locate(file, line) + ": " + reason), file_(file), line_(line), reason_(reason) {}

  const std::string& file() const { return file_; }
  int64_t line() const { return line_; }
  const std::string& reason() const { return reason_; }

  /// `file:line`, or `file` for line 0.
  static std::string locate(const std::string& file, int64_t line) {
    return line > 0 ? file + ":" + std::to_string(line) : file;
  }

 private:
  std::string file_;
  int64_t line_;
  std::string reason_;
};

}  // namespace translator
