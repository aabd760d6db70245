#pragma once

#include <functional>
#include <memory>

#include <gradus/error.h>

namespace gradus {

/// A fixed set of worker threads: as many as asked for, or fewer if the system refuses more, down to the caller
/// alone; size() tells. `run` calls job(i) on worker i, i = 0 .. size-1; worker 0 is the caller. Which worker
/// does what never depends on timing, so neither do results. A waiting thread spins for some 50 to 200
/// microseconds before it sleeps, unless threads outnumber processors: a job may be one step of decoding.
class ThreadPool {
 public:
  /// @param threads at least 1; 1 starts no thread. @throws Error for less.
  explicit ThreadPool(int threads, Caller caller = Caller::current());
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int size() const;
  /// Returns when all are done. Errors name the place that At names here; the lowest worker's is thrown.
  void run(const std::function<void(int)>& job);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// For a loop that waits for another thread.
void pause_thread();

/// Processors this process may use.
int available_threads();

}  // namespace gradus
