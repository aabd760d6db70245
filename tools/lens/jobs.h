#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include <common/progress.h>
#include <gradus/parallel.h>

namespace lens {

/// job(i, worker) for each i below count, on all processors: who is done takes the next. Worker 0 calls. What
/// takes longer than two seconds gets a bar of that name, none without one.
inline void run_jobs(size_t count, const std::function<void(size_t i, int worker)>& job,
                     const std::string& bar_name = {}) {
  gradus::ThreadPool pool(std::min(gradus::available_threads(), static_cast<int>(count)));
  translator::Progress bar(bar_name, static_cast<int64_t>(count),
                           {.delay_seconds = 2, .quiet = bar_name.empty()});
  std::atomic<size_t> next{0};
  std::atomic<int64_t> done{0};
  pool.run([&](int worker) {
    for (size_t i = next++; i < count; i = next++) {
      job(i, worker);
      const int64_t now = ++done;
      if (worker == 0) bar.update(now);
    }
  });
}

/// The bar of what compares gradients with differences.
inline constexpr const char* kChecks = "checks";

/// Counts from when it is made.
struct Stopwatch {
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  }
};

}  // namespace lens
