#pragma once

#if __has_include(<pty.h>)
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#define HAVE_PTY 1

#include <string>
#include <vector>

#include "../quick_doctest.h"
#include "program.h"

namespace cli {

// The program on a terminal of its own, of 80 columns.
class Terminal {
 public:
  explicit Terminal(const Arguments& arguments) {
    const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = forkpty(&fd_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      if (chdir(scratch_path().c_str()) != 0) _exit(127);
      std::string program = TRANSLATOR;
      std::vector<char*> argv = {program.data()};
      for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    REQUIRE(pid_ > 0);
  }
  ~Terminal() {
    if (pid_ > 0 && !over_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(fd_);
  }
  // Reads until `text` has come up `times` times; false when the program ended before.
  bool until(const std::string& text, size_t times = 1) {
    while (count(seen_, text) < times) {
      pollfd p{fd_, POLLIN, 0};
      if (poll(&p, 1, 60000) <= 0) return false;
      char buffer[1024];
      ssize_t n = read(fd_, buffer, sizeof buffer);
      if (n <= 0) return false;
      seen_.append(buffer, static_cast<size_t>(n));
    }
    return true;
  }
  void type(const std::string& keys) {
    REQUIRE(write(fd_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }
  // Its exit status, or minus the signal that ended it.
  int wait() {
    int status = 0;
    until("\x01");  // to the end
    REQUIRE(waitpid(pid_, &status, 0) == pid_);
    over_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  const std::string& seen() const { return seen_; }

 private:
  int fd_ = -1;
  pid_t pid_ = -1;
  bool over_ = false;
  std::string seen_;
};

}  // namespace cli
#endif
