#include "scratch.h"

#include <fmt/core.h>
#include <gradus/error.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace lens {
namespace fs = std::filesystem;
namespace {

// What a signal's handler removes. It may do little more than unlink() and rmdir(): names lie ready in arrays.
struct Entry {
  char path[PATH_MAX];
  std::atomic<bool> used;
};
Entry files[16], folders[4];
std::atomic<pid_t> child = 0;
constexpr int kEnds[] = {SIGINT, SIGTERM, SIGHUP};

template <size_t N>
void enter(Entry (&all)[N], const std::string& path) {
  for (Entry& e : all)
    if (e.used && path == e.path) return;
  for (Entry& e : all)
    if (!e.used && path.size() < sizeof e.path) {
      std::memcpy(e.path, path.c_str(), path.size() + 1);
      e.used = true;
      return;
    }
  gradus::fail("lens", "too many scratch files, or too long a name: " + path);
}

void clean_up(int signal) {
  end_child();
  for (const Entry& e : files)
    if (e.used) unlink(e.path);
  for (const Entry& e : folders)
    if (e.used) rmdir(e.path);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

void ends_with_us(pid_t started) { child = started; }

void end_child() {
  if (pid_t running = child; running > 0) kill(running, SIGKILL);
}

Scratch::Scratch() {
  std::error_code none;
  fs::path base = fs::temp_directory_path(none);
  std::string pattern = ((none ? fs::path("/tmp") : base) / "gradus-lens-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    gradus::fail("lens", fmt::format("no scratch folder in {}: {}; TMPDIR=DIR chooses another place",
                                     base.string(), std::strerror(errno)));
  path_ = pattern;
  enter(folders, pattern);
  // Who has a handler of his own (--watch) ends in good order by himself; what is ignored (nohup) stays so.
  for (int s : kEnds) {
    struct sigaction now = {};
    sigaction(s, nullptr, &now);
    if (now.sa_handler != SIG_DFL) continue;
    now.sa_handler = clean_up;
    sigfillset(&now.sa_mask);
    sigaction(s, &now, nullptr);
  }
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  bool last = true;
  for (Entry& e : files)
    if (e.used && fs::path(e.path).parent_path() == path_) e.used = false;
  for (Entry& e : folders) {
    if (e.used && path_ == e.path) e.used = false;
    last = last && !e.used;
  }
  if (!last) return;
  for (int s : kEnds) {
    struct sigaction now = {};
    sigaction(s, nullptr, &now);
    if (now.sa_handler == clean_up) ::signal(s, SIG_DFL);
  }
}

fs::path Scratch::file(const std::string& name) {
  fs::path out = path_ / name;
  enter(files, out.string());
  return out;
}

}  // namespace lens
