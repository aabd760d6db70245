#include <fmt/core.h>

#include <algorithm>
#include <atomic>

#include <common/error.h>
#include <common/progress.h>
#include <common/tell.h>
#include <common/terminal.h>

#include "ablate.h"
#include "jobs.h"

namespace lens {

int ablate(const AblateOptions& o) {
  Stopwatch watch;
  const AblateTask& task = o;
  translator::check_seeds(task.seed, o.seeds);
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
  {
    translator::Progress bar("training", static_cast<int64_t>(jobs) * task.epochs, {});
    run_jobs(jobs, [&](size_t i, int worker) {
      AblateTask own = task;
      own.seed = task.seed + i / all.size();
      found[i] = ablate(own, all[i % all.size()].cut, [&] {
        int64_t now = ++done;
        if (worker == 0) bar.update(now);
      });
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
    fmt::print("{}", ablate_text(task, all, translator::terminal_style(1)));
    return 0;
  }
  write_page(o.out, "ablate", to_json(task, all), fmt::format("{} models, {:.1f} s", jobs, watch.seconds()));
  if (o.out == "-") return 0;
  for (const std::string& text : findings(task, all)) translator::tell("  {}\n", text);
  return 0;
}

}  // namespace lens
