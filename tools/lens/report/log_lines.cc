#include "log_lines.h"

#include <common/error.h>

namespace lens {

bool LogLines::next() {
  constexpr size_t kLongest = 64'000'000;
  text_.clear();
  ++number_;
  std::streambuf* from = in_.rdbuf();
  for (int c; (c = from->sbumpc()) != std::char_traits<char>::eof();) {
    if (c == '\n') return true;
    if (text_.size() == kLongest)
      throw translator::InputError(path_, number_, "the line is longer than 64 MB: this is no log");
    text_ += static_cast<char>(c);
  }
  return !text_.empty();
}

}  // namespace lens
