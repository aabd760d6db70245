#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include <gradus/parallel.h>
#include <common/progress.h>
#include <common/tell.h>
#include <common/terminal.h>

#include "ablate.h"
#include "commands.h"

namespace lens {

int ablate(const AblateOptions& o) {
  auto started = std::chrono::steady_clock::now();
  AblateTask task;
  task.kind = o.task;
  task.length = o.length;
  task.hidden = o.hidden;
  task.epochs = o.epochs;
  task.seed = o.seed;
  std::vector<Ablation> all = {{Cut::none, {}}};
  for (const std::string& name :
       o.cuts.empty() ? std::vector<std::string>{"value", "score", "recurrent"} : o.cuts) {
    Cut cut = cut_of(name);
    if (std::none_of(all.begin(), all.end(), [&](const Ablation& a) { return a.cut == cut; }))
      all.push_back({cut, {}});
  }
  // A model a thread: they share nothing. The first thread, which is this one, moves the bar.
  size_t seeds = static_cast<size_t>(o.seeds), jobs = all.size() * seeds;
  std::vector<Ablation> found(jobs);
  std::atomic<int64_t> done{0};
  std::atomic<size_t> next{0};
  {
    translator::Progress bar("training", static_cast<int64_t>(jobs) * task.epochs, {});
    gradus::ThreadPool pool(std::min<int>(gradus::available_threads(), static_cast<int>(jobs)));
    pool.run([&](int worker) {
      for (size_t i = next++; i < jobs; i = next++) {
        AblateTask own = task;
        own.seed = task.seed + i / all.size();
        found[i] = ablate(own, all[i % all.size()].cut, [&] {
          int64_t now = ++done;
          if (worker == 0) bar.update(now);
        });
      }
    });
  }
  for (size_t i = 0; i < jobs; ++i) {
    Ablation& a = all[i % all.size()];
    if (i < all.size())
      a.epochs = std::move(found[i].epochs);
    else
      a.repeats.push_back(found[i].epochs.back());
  }
  if (o.text) {
    translator::TerminalStyle style = translator::terminal_style(1);
    fmt::print("{}", ablate_text(task, all, style.width, style.color != translator::Color::none));
    return 0;
  }
  std::string page = assemble_page("ablate", to_json(task, all));
  write_file(o.out, page);
  if (o.out == "-") return 0;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  translator::tell("{}: {} models, {:.1f} s, {} KB\n", o.out, jobs, seconds, page.size() / 1000);
  for (const std::string& text : findings(task, all)) translator::tell("  {}\n", text);
  return 0;
}

}  // namespace lens
