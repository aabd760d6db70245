#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

struct Ran {
  int code;
  std::string out;  // stdout and stderr
  bool says(const std::string& text) const { return out.find(text) != std::string::npos; }
};

// A shell command line without colours, 100 columns wide unless it says otherwise.
inline Ran run(const std::string& command) {
  Ran r{-1, ""};
  std::FILE* pipe =
      popen(("unset FORCE_COLOR COLORTERM; export COLUMNS=100; " + command + " 2>&1").c_str(), "r");
  if (!pipe) return r;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) r.out.append(buffer, n);
  int status = pclose(pipe);
  r.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return r;
}
