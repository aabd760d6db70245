#include <translator/commands/members.h>

#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <thread>

#include <fmt/ranges.h>

#include <common/error.h>
#include <common/progress.h>
#include <common/program.h>
#include <common/tell.h>
#include <gradus/parallel.h>
#include <translator/inference/ensemble.h>
#include <translator/model/files.h>
#include <translator/model/model_config.h>

namespace translator {
namespace {

// In memory that the processes of all members have.
std::span<Watched> watched(size_t count) {
  void* memory =
      mmap(nullptr, count * sizeof(Watched), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* all = static_cast<Watched*>(memory);
  std::uninitialized_default_construct_n(all, count);
  return {all, count};
}

struct Process {
  pid_t id = -1;
  std::optional<int> status = {};  // of waitpid, once it has ended

  void look() {
    int now = 0;
    pid_t found = 0;
    do found = waitpid(id, &now, WNOHANG);
    while (found < 0 && errno == EINTR);
    if (found != 0) status = now;
  }
  bool succeeded() const { return status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0; }
  // As a shell has it.
  int code() const { return WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status); }
};

// The model that is least far says how far all are. `begun`: how far they were when first seen.
void show(Progress& bar, std::span<const Watched> all, const std::vector<Process>& processes,
          std::optional<double>& begun) {
  double least = 1;
  std::vector<std::string> losses;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!processes[i].status) least = std::min(least, all[i].done.load());
    losses.push_back(fmt::format("{:.3f}", all[i].loss.load()));
  }
  // Until all have begun, the first may be showing how far it is with reading.
  if (least == 0) return;
  if (!begun) bar.start_at(std::llround(1000 * begun.emplace(least)));
  bar.update(std::llround(1000 * least), fmt::format("loss {}", fmt::join(losses, ", ")));
}

// An option of one kind of network is for those of that kind.
void keep_own_options(TrainCommand& m, const std::vector<std::string>& kinds) {
  const bool transformer = m.model.model == "transformer";
  const char* other = transformer ? "gru" : "transformer";
  if (std::find(kinds.begin(), kinds.end(), other) == kinds.end()) return;
  for (const std::string& option : options_only_of(other)) m.given.erase(option);
  if (!transformer && attention_of(m.model) != "multihead") m.given.erase("--heads");
}

// Until all have ended.
void watch(const TrainCommand& o, std::span<const Watched> all, std::vector<Process>& processes) {
  const std::atomic<bool>& stop = stop_on_signals();
  bool stopping = false;
  std::optional<double> begun;
  Progress bar(fmt::format("{} models", all.size()), 1000, {.quiet = o.train.quiet});
  for (;;) {
    bool running = false, failed = false;
    for (Process& p : processes) {
      if (!p.status) p.look();
      running |= !p.status;
      failed |= p.status && !p.succeeded();
    }
    if (!running) return;
    // A terminal's Ctrl-C has reached them as well. SIGTERM besides does no harm: it is the second of a kind
    // that ends a training at once.
    if ((stop || failed) && !std::exchange(stopping, true))
      for (const Process& p : processes)
        if (!p.status) kill(p.id, SIGTERM);
    show(bar, all, processes, begun);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace

std::vector<TrainCommand> members_of(const TrainCommand& o) {
  const std::vector<std::string> there = members_in(o.train.out);
  const size_t count = o.resume ? there.size() : o.together.size();
  auto refuse = [](const std::string& why) { throw UsageError("--together " + why); };
  if (o.resume && !o.together.empty()) refuse("is what the run was begun with: --resume takes it from there");
  if (count == 0) return {};
  if (count == 1 && !o.resume) refuse("names two models or more");
  if (o.print_config) refuse("has no --print-config: each of its models has a training.json");
  for (const std::string& path : {o.data.data, o.data.source, o.data.target, o.data.valid,
                                  o.data.valid_source, o.data.valid_target})
    if (path == "-") refuse("needs pairs in a file: standard input can be read once");
  const int models = static_cast<int>(count);
  TrainCommand first = o;
  if (!o.config.empty()) take_config(first, o.config);  // which may say the seed and the threads
  int threads = first.common.threads > 0 ? first.common.threads : gradus::available_threads();
  // What was begun on a larger machine, or with more --threads than processors, goes on.
  if (o.resume && o.common.threads == 0) threads = std::max(threads, models);
  if (threads < models)
    refuse(fmt::format("of {} models needs --threads {} or more, one for each", count, count));
  if (std::error_code ignored; std::filesystem::exists(in(o.train.out, "config.json"), ignored))
    throw InputError(o.train.out, 0, "holds a model itself: --out names a place for several");
  if (there.size() > count)
    throw InputError(
        there[count], 0,
        fmt::format("is there already, and would be one of {} models: --out names another place", count));
  if (!o.resume) check_seeds(first.train.seed, static_cast<int64_t>(count));
  std::vector<TrainCommand> out;
  for (size_t i = 0; i < count; ++i) {
    TrainCommand m = o;
    m.together.clear();
    m.train.out = in(o.train.out, fmt::format("{}", i + 1));
    m.common.threads = threads / models;
    m.train.quiet = o.train.quiet || i > 0;  // what is read is the same for all
    if (!o.resume) {
      m.model.model = o.together[i];
      m.train.seed = first.train.seed + i;
      m.given.insert({"--model", "--seed", "--threads"});
      keep_own_options(m, o.together);
    }
    out.push_back(std::move(m));
  }
  return out;
}

int train_together(const TrainCommand& o, std::vector<TrainCommand>& members) {
  const std::span<Watched> all = watched(members.size());
  std::vector<Process> processes;
  const pid_t parent = getpid();
  for (const TrainCommand& m : members) make_directory(m.train.out);
  for (size_t i = 0; i < members.size(); ++i) {
    std::fflush(nullptr);
    const pid_t id = fork();
    if (id == 0) {
#ifdef __linux__
      prctl(PR_SET_PDEATHSIG, SIGTERM);  // however the parent ends: nobody would see this one go on
#endif
      if (getppid() != parent) return 128 + SIGTERM;
      members[i].train.watched = &all[i];
      return run(members[i]);
    }
    if (id < 0) {
      tell("translator: a process cannot be started: {}\n", std::strerror(errno));
      for (const Process& p : processes) kill(p.id, SIGTERM);
      return 1;
    }
    processes.push_back({id});
  }
  watch(o, all, processes);
  const std::string& out = o.train.out;
  bool interrupted = false, begun = true;
  for (size_t i = 0; i < members.size(); ++i) {
    const int code = processes[i].code();
    const bool stopped = code == 130 || code == 128 + SIGTERM;  // the latter before its first step
    interrupted |= stopped;
    std::error_code ignored;
    begun = begun && std::filesystem::exists(in(members[i].train.out, "last.safetensors"), ignored);
    if (code == 0 || stopped) continue;
    tell("translator: model {} of {}, {}, ended with status {}\n", i + 1, members.size(),
         members[i].train.out, code);
    return code;
  }
  if (interrupted) {
    if (begun)
      tell("Interrupted; everything is saved in {}. Go on with: {} train --resume --out {}\n", out, program(),
           shell_word(out));
    else
      tell("Interrupted before all models of {} had begun: begin anew, with --force where one had\n", out);
    return 130;
  }
  for (size_t i = 0; i < members.size() && !o.train.quiet; ++i)
    tell("{}: validation loss {:.4f}\n", members[i].train.out, all[i].best.load());
  if (!o.train.quiet)
    tell("Together they are {}: {} translate {}\n", out, program(), shell_word(out));
  return 0;
}

}  // namespace translator
