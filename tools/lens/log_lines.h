#pragma once

#include <fstream>
#include <string>

namespace lens {

/// A log's lines, one after the other, numbered from 1.
class LogLines {
 public:
  explicit LogLines(const std::string& path) : path_(path), in_(path, std::ios::binary) {}
  bool is_open() const { return in_.is_open(); }
  /// @throws translator::InputError for a line of more than 64 MB: whatever that is, it is no log.
  bool next();
  const std::string& text() const { return text_; }
  int64_t number() const { return number_; }

 private:
  std::string path_, text_;
  std::ifstream in_;
  int64_t number_ = 0;
};

}  // namespace lens
