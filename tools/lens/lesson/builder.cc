#include "builder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gradus/error.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "paths.h"

extern char** environ;

namespace lens {
namespace fs = std::filesystem;
namespace {

bool in_build_tree() {
  return fs::exists(fs::path(kBuild)) && fs::exists(fs::path(kSource) / "tools/lens/lesson.h");
}

}  // namespace

fs::path course_folder() {
  return in_build_tree() ? fs::path(kSource) / "tools/lens" : fs::path(kInstalledData);
}

int run_program(const std::vector<std::string>& command, std::string* output) {
  std::fflush(stdout);
  int ends[2] = {-1, -1};
  if (output && pipe2(ends, O_CLOEXEC) != 0)
    gradus::fail("lens", fmt::format("no pipe: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output) posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  std::vector<char*> arguments;
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  pid_t child = -1;
  int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (output) close(ends[1]);
  if (error == 0 && output) {
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR);)
      if (n > 0) output->append(buffer, static_cast<size_t>(n));
  }
  if (output) close(ends[0]);
  if (error != 0) gradus::fail("lens", fmt::format("{} cannot be run: {}", command[0], std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool build_program(const fs::path& source, const fs::path& program, bool coloured) {
  std::vector<std::string> command(std::begin(kCompiler), std::end(kCompiler));
  for (const char* flag : kFlags) command.push_back(flag);
  for (const char* flag : {"-std=c++20", "-O0", "-Wall", "-Wextra"}) command.push_back(flag);
  command.push_back(coloured ? "-fdiagnostics-color=always" : "-fdiagnostics-color=never");
  std::string library;
  if (in_build_tree()) {
    for (const char* folder : {"lib", "nn", "tools"})
      command.push_back(fmt::format("-I{}/{}", kSource, folder));
    library = kBuild;
  } else {
    command.push_back(fmt::format("-I{}", kInstalledInclude));
    library = kInstalledLib;
  }
  for (const std::string& part : {source.string(), std::string("-o"), program.string(), "-L" + library,
                                  std::string("-lgradus-lens"), "-Wl,-rpath," + library})
    command.push_back(part);
  return run_program(command) == 0;
}

}  // namespace lens
