#include "running.h"

#include <common/error.h>
#include <common/json_text.h>
#include <common/progress.h>
#include <common/split.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <gradus/parallel.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <translator/model/files.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace papers {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;

// Within its lifetime what would end the program is only noted, so that it can end what it has started.
class NoteInterrupts {
 public:
  NoteInterrupts() {
    interrupted = 0;
    for (size_t i = 0; i < kCount; ++i) {
      before_[i] = std::signal(kSignals[i], [](int) { interrupted = 1; });
      if (before_[i] == SIG_IGN) std::signal(kSignals[i], SIG_IGN);  // nohup, jobs in the background
    }
  }
  ~NoteInterrupts() {
    for (size_t i = 0; i < kCount; ++i) std::signal(kSignals[i], before_[i]);
  }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  static constexpr size_t kCount = 3;
  void (*before_[kCount])(int);
};

// Where the programs of the build are.
fs::path place_of(const std::string& program) {
  const fs::path examples = fs::path(PAPERS_BUILD) / "examples";
  fs::path path = examples / (program == "translator" ? "translator" : "gallery") / program;
  if (!fs::exists(path))
    throw std::runtime_error(fmt::format("{} is not built: ninja -C {}", program, PAPERS_BUILD));
  return path;
}

struct ScratchDirectory {
  ScratchDirectory() {
    std::string pattern = (fs::temp_directory_path() / "gradus-papers-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw std::runtime_error(fmt::format("{}: {}", pattern, std::strerror(errno)));
    path = pattern;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

// A run under way, in a scratch directory of its own, which goes with it.
class Job {
 public:
  explicit Job(const Run& run) : run_(run), log_{run.setting, run.seed, typed(run.commands)} {
    for (const Words& words : run.commands) place_of(words[0]);  // known now, and not after the first of them
    start();
  }
  ~Job() {
    if (child_ > 0) {
      kill(child_, SIGTERM);
      waitpid(child_, nullptr, 0);
    }
  }
  Job(const Job&) = delete;

  // What of its work is done, in the seconds that it was expected to take.
  double progress() const {
    return std::min(run_.seconds, std::chrono::duration<double>(Clock::now() - begun_).count());
  }
  const Run& run() const { return run_; }
  const Log& log() const { return log_; }

  // True when the last command has ended. @throws std::runtime_error when one fails.
  bool finished() {
    int status = 0;
    rusage used{};
    if (wait4(child_, &status, WNOHANG, &used) != child_) return false;
    child_ = 0;
    log_.seconds +=
        static_cast<double>(used.ru_utime.tv_sec) + 1e-6 * static_cast<double>(used.ru_utime.tv_usec);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) interrupted = 1;  // Ctrl-C is for both
    if (interrupted) return false;
    if (status != 0) {
      std::string said = translator::read_file((scratch_.path / "said").string());
      throw std::runtime_error(fmt::format("failed: {}\n{}", log_.commands[next_ - 1],
                                           said.substr(0, said.find_last_not_of('\n') + 1)));
    }
    for (const std::string& line :
         translator::split(translator::read_file((scratch_.path / "printed").string()), '\n'))
      log_.lines.push_back(json_text::parse(line));
    if (next_ == run_.commands.size()) return true;
    start();
    return false;
  }

 private:
  void start() {
    const Words& words = run_.commands[next_++];
    std::string program = place_of(words[0]).string();
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, scratch_.path.c_str());
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "printed", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, "said", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int error = posix_spawn(&child_, program.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      child_ = 0;
      throw std::runtime_error(fmt::format("{}: {}", program, std::strerror(error)));
    }
  }

  const Run& run_;
  Log log_;
  ScratchDirectory scratch_;
  size_t next_ = 0;  // of the commands
  pid_t child_ = 0;
  Clock::time_point begun_ = Clock::now();
};

}  // namespace

bool run_missing(const std::string& name, const std::vector<Run>& all, LogFile& file) {
  std::vector<const Run*> missing;
  double total = 0, done = 0;
  for (const Run& run : all) {
    if (file.has(run)) continue;
    missing.push_back(&run);
    total += run.seconds;
  }
  if (missing.empty()) return true;
  if (const size_t others = file.others(all))
    throw translator::InputError(
        file.path(), 0,
        fmt::format("holds {} of other settings or seeds, or of an older program, which would be lost: name "
                    "another folder with --out, or remove the file",
                    others == 1 ? "a run" : fmt::format("{} runs", others)));
  // The longest first: the last ones to end are short.
  std::stable_sort(missing.begin(), missing.end(),
                   [](const Run* a, const Run* b) { return a->seconds > b->seconds; });
  const size_t most = static_cast<size_t>(gradus::available_threads());
  NoteInterrupts note;
  std::vector<std::unique_ptr<Job>> jobs;
  translator::Progress bar(name, std::max<int64_t>(1, std::llround(1000 * total)));
  size_t next = 0, ended = 0;
  while (ended < missing.size() && !interrupted) {
    while (jobs.size() < most && next < missing.size())
      jobs.push_back(std::make_unique<Job>(*missing[next++]));
    double so_far = done;
    for (auto& job : jobs) {
      so_far += job->progress();
      if (!job->finished()) continue;
      file.add(job->log(), all);
      done += job->run().seconds;
      ++ended;
      job.reset();
    }
    std::erase(jobs, nullptr);
    bar.update(std::llround(1000 * so_far), fmt::format("{} of {} runs", ended, missing.size()));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return !interrupted;
}

}  // namespace papers
