#include "../quick_doctest.h"
#include "../scratch.h"
#include "program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include <common/utf8.h>

#include <common/json_text.h>

namespace cli {
namespace {

namespace fs = std::filesystem;

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// What the child runs after fork; never returns.
[[noreturn]] void become(const Arguments& words, const Setting& setting, const std::string& stem) {
  auto put = [](int fd, const std::string& path, int flags) {
    int file = open(path.c_str(), flags, 0600);
    if (file < 0 || dup2(file, fd) < 0) _exit(127);
    close(file);
  };
  put(0, stem + ".in", O_RDONLY);
  put(1, stem + ".out", O_WRONLY | O_CREAT | O_TRUNC);
  put(2, stem + ".err", O_WRONLY | O_CREAT | O_TRUNC);
  for (const char* name : {"NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLORFGBG", "COLUMNS"}) unsetenv(name);
  setenv("TERM", "xterm-256color", 1);
  for (const auto& [name, value] : setting.environment) setenv(name.c_str(), value.c_str(), 1);
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(s, SIG_DFL);
  if (chdir(scratch_path().c_str()) != 0) _exit(127);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

pid_t spawn(const Arguments& words, const Setting& setting, std::string& stem) {
  static int number = 0;
  stem = (scratch_path() / (".run" + std::to_string(++number))).string();
  std::ofstream(stem + ".in", std::ios::binary) << setting.input;
  pid_t pid = fork();
  if (pid == 0) become(words, setting, stem);
  REQUIRE(pid > 0);
  return pid;
}

Result collect(int status, const std::string& stem) {
  Result r;
  if (WIFEXITED(status)) r.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) r.signal = WTERMSIG(status);
  r.out = slurp(stem + ".out");
  r.err = slurp(stem + ".err");
  for (const char* end : {".in", ".out", ".err"}) fs::remove(stem + end);
  return r;
}

}  // namespace

Arguments operator+(Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

const fs::path& scratch_path() {
  static ::scratch::Directory made;  // when first asked for; removed at the end of the process
  return made.path();
}

std::string in_scratch(const std::string& name) { return (scratch_path() / name).string(); }

Running::Running(const Arguments& arguments, const Setting& setting) {
  pid_ = spawn(Arguments{TRANSLATOR} + arguments, setting, stem_);
}

Running::~Running() {
  if (ended_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, &status_, 0);
}

void Running::send(int signal) const {
  if (!ended_) kill(pid_, signal);
}

bool Running::ended() {
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

Result Running::wait() {
  if (!ended_) REQUIRE(waitpid(pid_, &status_, 0) == pid_);
  ended_ = true;
  return collect(status_, stem_);
}

Result run(const Arguments& arguments, const Setting& setting) { return Running(arguments, setting).wait(); }

Result run_well(const Arguments& arguments, const Setting& setting) {
  const Result r = run(arguments, setting);
  REQUIRE_MESSAGE(r.code == 0, r.err);
  return r;
}

void check_refused(const Arguments& arguments, int code, const std::string& text, const Setting& setting) {
  const Result r = run(arguments, setting);
  CHECK(r.code == code);
  CHECK(r.out.empty());
  CHECK(r.err == "translator: " + text + "\n");
}

Result run_program(const Arguments& words, const Setting& setting) {
  std::string stem;
  pid_t pid = spawn(words, setting, stem);
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return collect(status, stem);
}

Result shell(const std::string& command) {
  return run_program({"/bin/sh", "-c", command}, {.environment = {{"T", TRANSLATOR}}});
}

void write_file(const std::string& name, const std::string& text) {
  std::ofstream(in_scratch(name), std::ios::binary) << text;
}

std::string read_file(const std::string& name) {
  REQUIRE_MESSAGE(exists(name), name);
  return slurp(in_scratch(name));
}

bool exists(const std::string& name) { return fs::exists(in_scratch(name)); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> out(1);
  for (char c : line) {
    if (c == '\t')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

std::string acts_on_terminal(const std::string& text) {
  namespace utf8 = translator::utf8;
  if (auto bad = utf8::describe_invalid_byte(text); !bad.empty()) return bad;
  for (char32_t c : utf8::decode(text))
    if (c != U'\n' && c != U'\t' && utf8::is_unprintable(c)) {
      char name[16];
      std::snprintf(name, sizeof name, "U+%04X", static_cast<unsigned>(c));
      return name;
    }
  return "";
}

std::vector<nlohmann::ordered_json> events(const std::string& directory, const std::string& kind) {
  std::vector<nlohmann::ordered_json> out;
  for (const std::string& line : lines_of(read_file(directory + "/train.log"))) {
    CAPTURE(line);
    nlohmann::ordered_json event = json_text::parse_or_discarded(line);
    REQUIRE(event.is_object());
    if (kind.empty() || event.at("event") == kind) out.push_back(std::move(event));
  }
  return out;
}

size_t validations(const std::string& directory) {
  return exists(directory + "/train.log") ? count(read_file(directory + "/train.log"), "\"validation\"") : 0;
}

Result interrupted(const Arguments& command, const std::string& out, size_t after, int signal,
                   const std::vector<std::string>& members) {
  auto early = [&](const std::string& member) { return validations(out + member) < after; };
  Result r;
  for (int attempt = 0; attempt < 10 && r.code != 130; ++attempt) {
    fs::remove_all(in_scratch(out));
    Running process(command);
    while (!process.ended() && std::any_of(members.begin(), members.end(), early))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    process.send(signal);
    r = process.wait();
  }
  REQUIRE_MESSAGE(r.code == 130, r.err);
  return r;
}

const std::string& short_pairs() {
  static const std::string name = [] {
    Result r = run({"corpus", "-n", "1200", "--max-length", "7", "-o", "short.tsv"});
    REQUIRE_MESSAGE(r.code == 0, r.err);
    return std::string("short.tsv");
  }();
  return name;
}

Arguments small_run(const std::string& out, const Arguments& more) {
  Arguments a = {"train",       "--data",      short_pairs(), "--hidden",
                 "32",          "--embedding", "32",          "--out",
                 out,           "--threads",   "1",           "--lr",
                 "0.01",        "--min-count", "1",           "--batch-size",
                 "32",          "--dropout",   "0.1",         "--subwords",
                 "none",        "--case",      "lower",       "--label-smoothing",
                 "0",           "--ema",       "0",           "--no-tie-embeddings",
                 "--attention", "bahdanau",  // which learns few short sentences in the fewest passes
                 "--optimizer", "adam"};
  if (std::find(more.begin(), more.end(), "--data") != more.end()) a.erase(a.begin() + 1, a.begin() + 3);
  return a + more;
}

const std::string& trained_model() {
  static const std::string name = [] {
    Result r = run(small_run("trained", {"--epochs", "8", "--shortlist"}));
    REQUIRE_MESSAGE(r.code == 0, r.err);
    return std::string("trained");
  }();
  return name;
}

void copy_model(const std::string& name) {
  fs::remove_all(scratch_path() / name);
  fs::copy(scratch_path() / trained_model(), scratch_path() / name);
}

}  // namespace cli
