#include <translator/model/files.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>

#include <gradus/io/replacement.h>
#include <common/error.h>

namespace translator {
namespace {

namespace fs = std::filesystem;

// 0, or the error of the system that kept a part of it from being written.
int write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    ssize_t put = ::write(fd, text.data() + at, text.size() - at);
    if (put >= 0)
      at += static_cast<size_t>(put);
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

bool is_within(const std::string& path, const std::string& directory) {
  std::error_code ignored;
  for (fs::path at = fs::absolute(path, ignored).lexically_normal(); !at.empty(); at = at.parent_path()) {
    if (is_same_place(at.string(), directory)) return true;
    if (at == at.parent_path()) break;  // the root
  }
  return false;
}

}  // namespace

std::string in(const std::string& directory, const std::string& file) {
  return (fs::path(directory) / file).string();
}

std::string absolute_path(const std::string& path) {
  if (path.empty() || path == "-") return path;
  return fs::absolute(path).lexically_normal().string();
}

void write_file(const std::string& path, const std::string& text) {
  gradus::io::replace_file(path, text, [&](const std::string& what) { throw InputError(path, 0, what); });
}

// Not by fs::directory_iterator, which ends the program where there is no memory.
std::vector<std::string> names_in(const std::string& directory) {
  std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
  std::vector<std::string> names;
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr)
    if (std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
  return names;
}

void make_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw InputError(path, 0, "cannot be made: " + error.message());
}

void must_be_makeable(const std::string& path) {
  std::error_code none;
  fs::path place = fs::absolute(path);
  const bool is_there = fs::is_directory(place, none);
  while (!fs::exists(place, none) && place.has_relative_path()) place = place.parent_path();
  int error = fs::is_directory(place, none) ? 0 : ENOTDIR;
  if (error == 0 && ::access(place.c_str(), W_OK | X_OK) != 0) error = errno;
  if (error != 0)
    throw InputError(
        path, 0, std::string("cannot be ") + (is_there ? "written to: " : "made: ") + std::strerror(error));
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path, 0, std::string("cannot be read: ") + std::strerror(errno));
  if (std::error_code no; fs::is_directory(path, no)) throw InputError(path, 0, "is a directory");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw InputError(path, 0, "cannot be read");
  return text;
}

bool is_same_place(const std::string& a, const std::string& b) {
  std::error_code ignored;
  auto whole = [&](const std::string& p) { return fs::weakly_canonical(fs::absolute(p, ignored), ignored); };
  return a == b || fs::equivalent(a, b, ignored) || (!a.empty() && !b.empty() && whole(a) == whole(b));
}

void must_not_overwrite(const std::string& option, const std::string& out,
                        const std::vector<std::string>& read) {
  if (out == "-") throw UsageError(option + " names a file: standard output has what else is said");
  for (const std::string& in : read) {
    if (!out.empty() && is_same_place(in, out))
      throw UsageError(option + ": " + out + " is what is read: name another file");
  }
}

void must_not_replace(const std::string& out, const std::vector<std::string>& read) {
  for (const std::string& in : read)
    if (is_within(in, out))
      throw InputError(out, 0, "has " + in + ", which is read, and would be replaced: name another place");
}

void must_not_write_within(const std::string& option, const std::string& out,
                           const std::vector<std::string>& read) {
  for (const std::string& in : read)
    if (!out.empty() && is_within(out, in))
      throw UsageError(option + ": " + out + " is within " + in + ", which is read: name another place");
}

void must_read_stdin_once(const std::vector<std::pair<std::string, std::string>>& option_paths) {
  std::string named;
  for (const auto& [option, path] : option_paths) {
    if (path != "-") continue;
    if (!named.empty())
      throw UsageError(named + " and " + option + " name standard input, which can be read once");
    named = option;
  }
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

void DirectoryLock::take(const std::string& directory) {
  if (fd_ >= 0) return;
  fd_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw InputError(directory, 0, "another training writes here; name another place");
}

void print_whole(const std::string& text) {
  std::fflush(stdout);
  if (int error = write_all(1, text))
    throw std::runtime_error(std::string("standard output cannot be written: ") + std::strerror(error));
}

// What does not fit (a full disk) is taken back, so that the log has whole lines only.
void append_line(const std::string& path, const std::string& line) {
  int fd, error = 0;
  do fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    error = errno;
  } else {
    off_t before = ::lseek(fd, 0, SEEK_END);
    error = write_all(fd, line + "\n");
    if (!error && ::fsync(fd) != 0 && errno != EINVAL) error = errno;
    if (error && before >= 0) (void)!::ftruncate(fd, before);
    ::close(fd);
  }
  if (error) throw InputError(path, 0, std::string("cannot be written: ") + std::strerror(error));
}

}  // namespace translator
