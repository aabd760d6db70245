#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <gradus/error.h>

namespace gradus {

/// A fixed set of worker threads: those asked for, or fewer where the system gives no more, down to the caller
/// alone; size() tells. `run` gives worker i the call job(i), i = 0 .. size-1; worker 0 is the caller. Which
/// worker does what never depends on timing, so neither do results. Whoever waits looks for work for some ten
/// microseconds before it sleeps: jobs may be as short as a step of decoding.
class ThreadPool {
 public:
  /// @param threads at least 1; 1 starts no thread. @throws Error for less.
  explicit ThreadPool(int threads, Caller caller = Caller::current());
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int size() const;
  /// Returns when all are done. Errors in it name the place that At names here. The first exception (lowest
  /// worker number) is thrown again here.
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
