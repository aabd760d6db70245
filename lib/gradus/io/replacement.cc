#include <gradus/io/replacement.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace gradus::io {
namespace {

[[noreturn]] void failed(const Complain& complain, const char* what) {
  std::string text = std::string(what) + ": " + std::strerror(errno);
  complain(text);
  throw std::logic_error(text);  // a complaint throws
}

// `call` again for as long as signals interrupt it.
template <class Call>
auto patiently(Call&& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int open_file(const std::string& path, int flags) {
  return patiently([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
}

void write_all(int fd, const void* from, int64_t bytes, const Complain& complain) {
  for (const char* at = static_cast<const char*>(from); bytes > 0;) {
    ssize_t put = patiently([&] { return ::write(fd, at, static_cast<size_t>(bytes)); });
    if (put < 0) failed(complain, "cannot be written");
    at += put, bytes -= put;
  }
}

void write_in_place(const std::string& path, std::string_view bytes, const Complain& complain) {
  int fd = open_file(path, O_WRONLY);
  if (fd < 0) failed(complain, "cannot be written");
  std::unique_ptr<int, void (*)(int*)> closed(&fd, [](int* open) { ::close(*open); });
  write_all(fd, bytes.data(), static_cast<int64_t>(bytes.size()), complain);
}

// What a link stands for: that is replaced, and the link stays.
std::string resolved(const std::string& path) {
  std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? real.get() : path;
}

}  // namespace

Replacement::Replacement(const std::string& path, Complain complain)
    : path_(resolved(path)), temporary_(path_ + ".tmp"), complain_(std::move(complain)) {
  struct stat old;
  const bool there_is = ::stat(path_.c_str(), &old) == 0;
  if (there_is && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode)) complain_("cannot be replaced: no file");
  try {
    for (;;) {
      // O_NOFOLLOW: a link of this name, in a directory from somewhere, must not choose what is overwritten.
      fd_ = open_file(temporary_, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
      if (fd_ < 0) failed(complain_, "cannot be written");
      if (patiently([&] { return flock(fd_, LOCK_EX); }) != 0) failed(complain_, "cannot be written");
      // While we waited, the other writer may have renamed the file that we have open.
      struct stat mine, there;
      if (fstat(fd_, &mine) == 0 && ::lstat(temporary_.c_str(), &there) == 0 && mine.st_ino == there.st_ino)
        break;
      ::close(fd_);
    }
    if (ftruncate(fd_, 0) != 0) failed(complain_, "cannot be written");
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    throw;
  }
  if (there_is) (void)!fchmod(fd_, old.st_mode & 0777);  // who could read the old one can read the new one
}

Replacement::~Replacement() {
  if (!done_) ::unlink(temporary_.c_str());
  if (fd_ >= 0) ::close(fd_);
}

void Replacement::write(const void* from, int64_t bytes) const { write_all(fd_, from, bytes, complain_); }

void Replacement::commit() {
  if (patiently([&] { return fsync(fd_); }) != 0) failed(complain_, "cannot be written");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) failed(complain_, "cannot be replaced");
  done_ = true;
  // The rename itself is safe only when the directory is on disk.
  size_t slash = path_.rfind('/');
  int directory = open_file(slash == path_.npos ? "." : path_.substr(0, slash + 1), O_RDONLY | O_DIRECTORY);
  bool flushed = directory >= 0 && (patiently([&] { return fsync(directory); }) == 0 || errno == EINVAL);
  int error = errno;
  if (directory >= 0) ::close(directory);
  errno = error;
  if (!flushed) failed(complain_, "its directory cannot be flushed");
}

void replace_file(const std::string& path, std::string_view bytes, const Complain& complain) {
  struct stat there;
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    return write_in_place(path, bytes, complain);
  Replacement file(path, complain);
  file.write(bytes.data(), static_cast<int64_t>(bytes.size()));
  file.commit();
}

}  // namespace gradus::io
