#include "builder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <common/split.h>

#include "compile_error.h"
#include "paths.h"
#include "scratch.h"

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

// Beside the program where it was installed, wherever that was moved; in the source tree; where it should have
// gone.
Places places() {
  std::error_code ignored;
  fs::path bin = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  auto moved = [&](const char* place) {
    return (bin / fs::path(place).lexically_relative(kInstalledBin)).lexically_normal();
  };
  Places beside{moved(kInstalledData), {moved(kInstalledInclude)}, moved(kInstalledLib)};
  if (fs::exists(beside.data / "lessons", ignored)) return beside;
  fs::path source = kSource;
  if (fs::exists(kBuild, ignored) && fs::exists(source / "tools/lens/include/lens/lesson.h", ignored))
    return {source / "tools/lens", {source / "lib", source / "nn", source / "tools/lens/include"}, kBuild};
  return {kInstalledData, {kInstalledInclude}, kInstalledLib};
}

bool can_run(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  for (const std::string& folder : translator::split(path ? path : "/usr/bin:/bin", ':'))
    if (access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
  return false;
}

// Bytes that a learner's program may take.
int64_t memory_limit() {
  int64_t half = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / 2;
  return std::min<int64_t>(int64_t{4} << 30, half);
}

// Bytes that a process holds; 0 when it is gone.
int64_t memory_of(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/statm", process));
  int64_t all = 0, resident = 0;
  return in >> all >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

fs::path course_folder() { return places().data; }

Ended run_program(const std::vector<std::string>& command, std::string* output, int seconds, int stream) {
  std::fflush(stdout);
  int ends[2] = {-1, -1};
  if (output && pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output) posix_spawn_file_actions_adddup2(&actions, ends[1], stream);
  std::vector<char*> arguments;
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  pid_t child = -1;
  int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (output) close(ends[1]);
  if (error != 0) {
    if (output) close(ends[0]);
    throw std::runtime_error(fmt::format(
        "{} cannot be run: {}{}", command[0], std::strerror(error),
        error == EACCES ? "; where temporary files may not be run, TMPDIR=DIR chooses another place" : ""));
  }
  ends_with_us(child);
  if (output) fcntl(ends[0], F_SETFL, O_NONBLOCK);
  constexpr size_t kMostOutput = 10'000'000;
  // False when nothing more will come.
  auto take = [&] {
    char buffer[4096];
    ssize_t n;
    while ((n = read(ends[0], buffer, sizeof buffer)) > 0)
      if (output->size() < kMostOutput) output->append(buffer, static_cast<size_t>(n));
    return n < 0 && (errno == EAGAIN || errno == EINTR);
  };
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  Ended ended;
  int status = 0;
  for (bool open = output != nullptr; waitpid(child, &status, WNOHANG) == 0;) {
    pollfd in{open ? ends[0] : -1, POLLIN, 0};
    if (poll(&in, 1, 10) > 0) open = take();
    if (seconds == 0 || ended.late || ended.greedy) continue;
    ended.late = std::chrono::steady_clock::now() > deadline;
    ended.greedy = memory_of(child) > memory_limit();
    if (ended.late || ended.greedy) kill(child, SIGKILL);
  }
  ends_with_us(0);
  if (output) {
    take();
    close(ends[0]);
  }
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

std::string why_ended(const Ended& ended, int seconds) {
  if (ended.late)
    return fmt::format(
        "after {} second{} the program had not ended, and was ended: does a loop never stop? (--time-limit "
        "gives it more)",
        seconds, seconds == 1 ? "" : "s");
  if (ended.greedy)
    return fmt::format("the program took more than {:.1f} GB of memory, and was ended: does a loop never stop?",
                       static_cast<double>(memory_limit()) / 0x1p30);
  if (ended.code > 128)
    return fmt::format("the program was ended by signal {} ({})", ended.code - 128,
                       strsignal(ended.code - 128));
  return "";
}

Judged judge(const Trial& trial, std::string* output) {
  Scratch scratch;
  fs::path source = scratch.file("program.cc"), program = scratch.file("program"),
           told = scratch.file("verdict");
  {
    std::ofstream out(source);
    out << "#include <lens/lesson.h>\n#include <lens/verdict.h>\n#include <cstdio>\n"
        << "#define main learners_main\n#include \"" << fs::absolute(trial.source).string()
        << "\"\n#undef main\n"
        << trial.before << "\nint main() { return lens::tell(" << trial.then << "); }\n";
    if (!out.flush()) throw std::runtime_error(source.string() + " cannot be written");
  }
  Judged out;
  if (!build_program(source, program, trial.coloured, trial.source, trial.optimised)) {
    out.why = "it does not compile: see above";
    return out;
  }
  // A word that no program of yesterday knows.
  uint64_t chance[2] = {};
  if (getentropy(chance, sizeof chance) != 0) throw std::runtime_error("the system gives no random numbers");
  std::string word = fmt::format("{:016x}{:016x}", chance[0], chance[1]);
  setenv("LENS_VERDICT", (word + " " + told.string()).c_str(), 1);
  Ended ended = run_program({program.string()}, output, trial.seconds);
  unsetenv("LENS_VERDICT");
  std::ifstream in(told);
  std::string theirs;
  int code = -1, checks = 0, failed = 0;
  bool has_told = in >> theirs >> code >> checks >> failed && theirs == word;
  out.why = why_ended(ended, trial.seconds);
  if (!out.why.empty()) return out;
  if (!has_told)
    out.why = fmt::format(
        "the program ended (exit status {}) before the check was over: does something in it call exit?",
        ended.code);
  else if (trial.must_check && checks == 0)
    out.why = "main() checks nothing any more: --reset hands the file out anew, and keeps yours beside it";
  out.passed = has_told && code == 0 && ended.code == 0 && (!trial.must_check || (checks > 0 && failed == 0));
  return out;
}

bool build_program(const fs::path& source, const fs::path& program, bool coloured, const fs::path& learners,
                   bool optimised) {
  std::vector<std::string> command(std::begin(kCompiler), std::end(kCompiler));
  if (const char* other = std::getenv("CXX"); other && *other) {  // words, as make reads them
    std::istringstream words(other);
    const std::vector<std::string> theirs(std::istream_iterator<std::string>(words), {});
    if (!theirs.empty()) command = theirs;
  }
  if (!can_run(command[0]))
    throw std::runtime_error(
        fmt::format("there is no compiler {}, which this program builds your file with: install it (Debian: "
                    "apt install g++), or name another one that knows C++20: CXX=clang++ lens ...",
                    command[0]));
  for (const char* flag : kFlags) command.push_back(flag);
  for (const char* flag : {"-std=c++20", optimised ? "-O1" : "-O0", "-Wall", "-Wextra"})
    command.push_back(flag);
  command.push_back(coloured ? "-fdiagnostics-color=always" : "-fdiagnostics-color=never");
  Places where = places();
  for (const fs::path& folder : where.include) command.push_back("-I" + folder.string());
  std::string library = where.library.string();
  for (const std::string& part : {source.string(), std::string("-o"), program.string(), "-L" + library,
                                  std::string("-lgradus-lens"), "-Wl,-rpath," + library})
    command.push_back(part);
  std::string messages;
  const bool built = run_program(command, &messages, 0, 2).code == 0;
  // By the name that the learner knows it by.
  const std::string file = (learners.empty() ? source : learners).string(),
                    whole = fs::absolute(file).string();
  for (size_t at = 0; whole != file && (at = messages.find(whole, at)) != std::string::npos;
       at += file.size())
    messages.replace(at, whole.size(), file);
  std::string first = built ? "" : first_error(messages, file);
  std::fputs((first.empty() ? messages : first).c_str(), stderr);  // nobody need hear it
  return built;
}

}  // namespace lens
