#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>

#include <gradus/parallel.h>

namespace lens {

/// job(i, worker) for each i below count, on all processors: who is done takes the next. Worker 0 calls.
inline void run_jobs(size_t count, const std::function<void(size_t i, int worker)>& job) {
  gradus::ThreadPool pool(std::min(gradus::available_threads(), static_cast<int>(count)));
  std::atomic<size_t> next{0};
  pool.run([&](int worker) {
    for (size_t i = next++; i < count; i = next++) job(i, worker);
  });
}

/// Counts from when it is made.
struct Stopwatch {
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  }
};

}  // namespace lens
