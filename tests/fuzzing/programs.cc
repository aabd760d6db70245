// The programs themselves, started: the first line of the input names one, the next ones are its arguments,
// and behind each line "--- NAME" stands a file of the directory they run in. Whatever they are told, they
// end by themselves with an exit status of theirs and say what is wrong in a sentence.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "fuzz.h"
#include "small_model.h"

using namespace fuzzing;

namespace {

namespace fs = std::filesystem;

constexpr int kPatience = 1000;  // milliseconds; what takes longer has found much to do, and is ended

std::string program(const std::string& name) {
  std::string build = FUZZ_BUILD;
  if (name.starts_with("l")) return build + "/tools/lens/lens";
  if (name.starts_with("b")) return build + "/tools/bench/bench";
  return build + "/examples/translator/translator";
}

// Only names within the directory: a program writes where it is told.
bool harmless(const std::string& argument) {
  return argument.find('/') == argument.npos && argument.find("..") == argument.npos &&
         argument.find('\0') == argument.npos && argument.find("watch") == argument.npos;
}

const std::string& directory() {
  static const std::string path = [] {
    std::string where = scratch_directory() + "/programs";
    fs::create_directory(where);
    return where;
  }();
  return path;
}

void fill(const std::vector<std::pair<std::string, std::string>>& files) {
  static const fs::path good = [] {
    fs::path where = fs::path(scratch_directory()) / "good";
    translator::Model model = small_model("gru");
    model.save_description(where.string());
    model.save_weights(where.string());
    return where;
  }();
  for (const auto& entry : fs::directory_iterator(directory())) fs::remove_all(entry.path());
  fs::copy(good, fs::path(directory()) / "m");
  write_file(directory() + "/pairs.tsv", "a b\tx y\nb a\ty x\nc\tz\na\tx\n");
  for (const auto& [name, text] : files) {
    std::string path = directory() + (name.starts_with("m.") ? "/m/" + name.substr(2) : "/" + name);
    if (name.size() < 30 && harmless(name) && !fs::is_directory(path)) write_file(path, text);
  }
}

// The exit status; -1 for a program that was ended because it took long, -N for one that signal N ended.
int start(std::vector<std::string> words) {
  std::string path = program(words[0]), where = directory();
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  std::vector<std::string> settings = {
      "PATH=/usr/bin:/bin", "HOME=/nonexistent",
      "TERM=dumb",          "OPENBLAS_NUM_THREADS=1",
      "TMPDIR=" + where,    "ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0"};
  std::vector<char*> environment;
  for (std::string& s : settings) environment.push_back(s.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, where.c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  std::string said = scratch_directory() + "/stderr";
  posix_spawn_file_actions_addopen(&actions, 2, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  int error = posix_spawn(&pid, path.c_str(), &actions, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  must(error == 0, "a program can be started", [&] { return path; });
  pollfd ended{static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), POLLIN, 0};
  must(ended.fd >= 0, "a program can be waited for");
  int in_time = -1;
  while (in_time < 0) in_time = poll(&ended, 1, kPatience);  // a signal interrupts it
  close(ended.fd);
  kill(-pid, SIGKILL);  // and what it started
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
  }
  if (in_time == 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

FUZZ_TARGET(
    programs,
    {"translator\ntranslate\nm\na b",
     "translator\ntranslate\nm\na b\n--attention-map\n--scores\n-k\n3\n--n-best\n2",
     "translator\nevaluate\nm\npairs.tsv\n--json\n--by-length",
     "translator\ncorpus\n-n\n3\n--max-length\n5\n--links",
     "translator\ntrain\n--data\npairs.tsv\n--epochs\n1\n--hidden\n4\n--embedding\n4\n--threads\n1",
     "translator\ntrain\n--data\npairs.tsv\n-m\ntransformer\n-e\n1\n--d-model\n4\n--heads\n2\n--threads\n1",
     "translator\ntrain\n--out\nm\n--resume\n--data\npairs.tsv",
     "translator\nreplay\nm",
     "translator\ntranslate\nm\n--- m.config.json\n{\"network\": {}}",
     "lens\nexplain\nm\na b\n--text",
     "lens\ngraph\nm\na b\n--json",
     "lens\nblame\nm\npairs.tsv",
     "lens\nflow\n--text\n--seeds\n1\n--length\n5",
     "lens\ncheck\nswish\n--html",
     "lens\ncheck\n--from\nlog\n--- log\n{\"title\":\"x\",\"tensors\":[]}",
     "lens\nlesson",
     "lens\nlab\n1\n--hint",
     "lens\nreport\nm\n--- m.train.log\n{\"event\":\"start\",\"version\":2}\n{\"event\":\"end\",\"step\":1}",
     "bench\ntrain\n--size\nnone",
     "bench\ndecode\n--load\nm",
     "translator\n--help",
     "lens\n--help"}) {
  auto parts = sections(input);
  std::vector<std::string> words = lines(parts[0].second);
  if (words.empty() || words.size() > 30) return false;
  for (const std::string& w : words)
    if (!harmless(w)) return false;
  // Its own training data would take it a minute each time.
  bool trains = std::find(words.begin(), words.end(), "train") != words.end() ||
                std::find(words.begin(), words.end(), "compare") != words.end();
  if (trains && words[0].starts_with("t"))
    words.insert(words.end(), {"--data", "pairs.tsv", "--max-minutes", "0.001"});
  fill({parts.begin() + 1, parts.end()});
  int code = start(words);
  if (code == -1) return true;
  auto which = [&] { return words[0] + ": " + std::to_string(code); };
  must(code >= 0, "no signal ends a program", which);
  must(code <= 2, "a program has an exit status of its own", which);
  std::string said = read_file(scratch_directory() + "/stderr");
  must(code == 0 || !said.empty() || words[0].starts_with("l"), "what is wrong is said");
  if (!said.empty()) must_be_printable(said);
  return code == 0;
}
