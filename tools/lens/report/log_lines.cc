#include "log_lines.h"

#include <common/error.h>

namespace lens {

bool next_line(std::istream& log, const std::string& path, int64_t number, std::string& line) {
  constexpr size_t kLongest = 64'000'000;
  line.clear();
  std::streambuf* from = log.rdbuf();
  for (int c; (c = from->sbumpc()) != std::char_traits<char>::eof();) {
    if (c == '\n') return true;
    if (line.size() == kLongest)
      throw translator::InputError(path, number, "the line is longer than 64 MB: this is no log");
    line += static_cast<char>(c);
  }
  return !line.empty();
}

}  // namespace lens
