#include "builder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "paths.h"

extern char** environ;

namespace lens {
namespace fs = std::filesystem;
namespace {

// What learners' programs are made with.
struct Places {
  fs::path data;                  // lessons/ and labs/
  std::vector<fs::path> include;  // to search
  fs::path library;               // where libgradus-lens lies
};

// Beside the program where it was installed, wherever that was moved; in the source tree; where it should have gone.
Places places() {
  std::error_code ignored;
  fs::path bin = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  auto moved = [&](const char* place) {
    return (bin / fs::path(place).lexically_relative(kInstalledBin)).lexically_normal();
  };
  Places beside{moved(kInstalledData), {moved(kInstalledInclude)}, moved(kInstalledLib)};
  if (fs::exists(beside.data / "lessons", ignored)) return beside;
  fs::path source = kSource;
  if (fs::exists(kBuild, ignored) && fs::exists(source / "tools/lens/lesson.h", ignored))
    return {source / "tools/lens", {source / "lib", source / "nn", source / "tools"}, kBuild};
  return {kInstalledData, {kInstalledInclude}, kInstalledLib};
}

bool can_run(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace

fs::path course_folder() { return places().data; }

int run_program(const std::vector<std::string>& command, std::string* output) {
  std::fflush(stdout);
  int ends[2] = {-1, -1};
  if (output && pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
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
  if (error != 0)
    throw std::runtime_error(fmt::format("{} cannot be run: {}", command[0], std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool build_program(const fs::path& source, const fs::path& program, bool coloured) {
  std::vector<std::string> command(std::begin(kCompiler), std::end(kCompiler));
  if (const char* other = std::getenv("CXX"); other && *other) {  // words, as make reads them
    std::istringstream words(other);
    command.assign(std::istream_iterator<std::string>(words), {});
  }
  if (!can_run(command[0]))
    throw std::runtime_error(fmt::format(
        "there is no compiler {}, which this program builds your file with: install it (Debian: apt install g++), or "
        "name another one that knows C++20: CXX=clang++ lens ...",
        command[0]));
  for (const char* flag : kFlags) command.push_back(flag);
  for (const char* flag : {"-std=c++20", "-O0", "-Wall", "-Wextra"}) command.push_back(flag);
  command.push_back(coloured ? "-fdiagnostics-color=always" : "-fdiagnostics-color=never");
  Places where = places();
  for (const fs::path& folder : where.include) command.push_back("-I" + folder.string());
  std::string library = where.library.string();
  for (const std::string& part : {source.string(), std::string("-o"), program.string(), "-L" + library,
                                  std::string("-lgradus-lens"), "-Wl,-rpath," + library})
    command.push_back(part);
  return run_program(command) == 0;
}

}  // namespace lens
