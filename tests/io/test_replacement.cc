// Files that are written whole or not at all.

#include <csignal>
#include <stdexcept>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gradus/io/replacement.h>

#include "../read.h"
#include "../thrown.h"
#include "scratch.h"

using gradus::io::replace_file;

namespace {

void complain_replaced(const std::string& what) { throw std::runtime_error(what); }

std::string refusal(const std::string& path, const std::string& text) {
  return thrown<std::runtime_error>([&] { replace_file(path, text, complain_replaced); });
}

bool there(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0;
}

}  // namespace

TEST_CASE("replace_file: the new text, the old permissions, and nothing beside it") {
  scratch::Directory dir;
  std::string path = dir.file("page.html");
  replace_file(path, "one", complain_replaced);
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  replace_file(path, std::string("t\0wo", 4), complain_replaced);
  CHECK(read_whole(path) == std::string("t\0wo", 4));
  struct stat info;
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0640);
  CHECK_FALSE(there(path + ".tmp"));
  CHECK(refusal(dir.file("nowhere/page.html"), "x") == "cannot be written: No such file or directory");
}

TEST_CASE("replace_file follows a link to a file; a link under the temporary name leads it nowhere") {
  scratch::Directory dir;
  std::string real = dir.file("real"), link = dir.file("link"), other = dir.file("other");
  replace_file(real, "old", complain_replaced);
  replace_file(other, "precious", complain_replaced);
  REQUIRE(::symlink(real.c_str(), link.c_str()) == 0);
  replace_file(link, "new", complain_replaced);
  CHECK(read_whole(real) == "new");
  struct stat info;
  REQUIRE(::lstat(link.c_str(), &info) == 0);
  CHECK(S_ISLNK(info.st_mode));

  REQUIRE(::symlink(other.c_str(), (real + ".tmp").c_str()) == 0);
  CHECK(refusal(real, "newer").starts_with("cannot be written: "));
  CHECK(read_whole(other) == "precious");
  CHECK(read_whole(real) == "new");
}

TEST_CASE("replace_file writes into a pipe and a device, which stay what they are") {
  scratch::Directory dir;
  std::string pipe = dir.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    replace_file(pipe, "through", complain_replaced);
    _exit(0);
  }
  CHECK(read_whole(pipe) == "through");
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  struct stat info;
  REQUIRE(::lstat(pipe.c_str(), &info) == 0);
  CHECK(S_ISFIFO(info.st_mode));
  if (there("/dev/full")) {
    CHECK(refusal("/dev/full", "x") == "cannot be written: No space left on device");
    REQUIRE(::stat("/dev/full", &info) == 0);
    CHECK(S_ISCHR(info.st_mode));
  }
  CHECK(refusal(dir.file("."), "x") == "cannot be written: Is a directory");
}

TEST_CASE("replace_file: a quota met in the middle leaves the old text and no half one") {
  scratch::Directory dir;
  std::string path = dir.file("model");
  replace_file(path, "old", complain_replaced);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(refusal(path, std::string(5000, 'x')) == "cannot be written: File too large" ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK(read_whole(path) == "old");
  CHECK_FALSE(there(path + ".tmp"));
}
