#pragma once

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include <common/error.h>

namespace translator {

/// Standard input line by line. Before it waits for more input it calls `before_wait`, so that what was read
/// can be answered first: the program works as one end of a conversation, not only on files.
class LineReader {
 public:
  /// bytes of a line that are kept
  static constexpr size_t kLongest = 1 << 20;

  explicit LineReader(std::function<void()> before_wait) : before_wait_(std::move(before_wait)) {}

  /// Of a line with more than kLongest bytes only the first ones. False: there are no more.
  /// @throws InputError where it cannot be read.
  bool next(std::string& line) {
    for (;;) {
      size_t end = buffer_.find('\n', std::max(begin_, searched_));
      if (end != std::string::npos) {
        line.assign(buffer_, begin_, end - begin_);
        begin_ = end + 1;
        return true;
      }
      buffer_.erase(0, begin_);
      begin_ = 0;
      if (buffer_.size() > kLongest) buffer_.resize(kLongest + 1);
      searched_ = buffer_.size();
      pollfd input{0, POLLIN, 0};
      if (poll(&input, 1, 0) == 0) before_wait_();
      char chunk[1 << 16];
      ssize_t got = ::read(0, chunk, sizeof chunk);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        throw InputError("standard input", 0, fmt::format("cannot be read: {}", std::strerror(errno)));
      if (got == 0) {  // the last line may lack its end
        line = std::exchange(buffer_, {});
        return !line.empty();
      }
      buffer_.append(chunk, static_cast<size_t>(got));
    }
  }

 private:
  std::function<void()> before_wait_;
  std::string buffer_;
  size_t begin_ = 0, searched_ = 0;
};

}  // namespace translator
