#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gradus::io {

/// Says, by throwing, what is wrong with a file; who calls knows what to name.
using Complain = std::function<void(const std::string& what)>;

/// A new file until it takes the old one's place: written to `path`.tmp, flushed to disk, renamed over `path`,
/// its directory flushed. A crash, a full disk or a kill at any moment leaves the previous file whole and no
/// half one under the final name (of a link, its file's). One name, so that what a crash leaves is written
/// over by the next attempt; locked, so that two writers take turns. Without commit() nothing remains.
class Replacement {
 public:
  Replacement(const std::string& path, Complain complain);
  ~Replacement();
  Replacement(const Replacement&) = delete;

  void write(const void* from, int64_t bytes) const;
  void commit();

 private:
  std::string path_, temporary_;
  Complain complain_;
  int fd_ = -1;
  bool done_ = false;
};

/// A whole file in this way. Where `path` is a link, the file that it points to is replaced; what is no file (a
/// device, a pipe) is written to as it is.
void replace_file(const std::string& path, std::string_view bytes, const Complain& complain);

}  // namespace gradus::io
