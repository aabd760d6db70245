#pragma once

#include <istream>
#include <string>

namespace lens {

/// A log's lines, one after the other, numbered from 1.
class LogLines {
 public:
  /// Of a stream, which the errors call `path`.
  LogLines(std::istream& in, std::string path) : in_(in), path_(std::move(path)) {}
  /// @throws translator::InputError for a line of more than 64 MB: whatever that is, it is no log.
  bool next();
  const std::string& text() const { return text_; }
  int64_t number() const { return number_; }

 private:
  std::istream& in_;
  std::string path_, text_;
  int64_t number_ = 0;
};

}  // namespace lens
