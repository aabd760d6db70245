#include <gradus/parallel.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <gradus/error.h>

#ifdef __linux__
#include <sched.h>
#endif

namespace gradus {

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable wake, finished;
  const std::function<void(int)>* job = nullptr;
  uint64_t round = 0;
  int busy = 0;
  bool stop = false;
  std::vector<std::exception_ptr> errors;
  std::vector<std::thread> threads;

  void guarded(const std::function<void(int)>& f, int worker) {
    try {
      f(worker);
    } catch (...) {
      errors[static_cast<size_t>(worker)] = std::current_exception();
    }
  }

  void loop(int worker) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stop || round != seen; });
      if (stop) return;
      seen = round;
      lock.unlock();
      guarded(*job, worker);
      lock.lock();
      if (--busy == 0) finished.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads < 1) fail("ThreadPool", "needs at least one thread");
  state_->errors.resize(static_cast<size_t>(threads));
  for (int i = 1; i < threads; ++i) state_->threads.emplace_back([this, i] { state_->loop(i); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (std::thread& t : state_->threads) t.join();
}

int ThreadPool::size() const { return static_cast<int>(state_->errors.size()); }

void ThreadPool::run(const std::function<void(int)>& job) {
  State& s = *state_;
  {
    std::lock_guard lock(s.mutex);
    s.job = &job;
    s.busy = size() - 1;
    ++s.round;
  }
  s.wake.notify_all();
  s.guarded(job, 0);
  {
    std::unique_lock lock(s.mutex);
    s.finished.wait(lock, [&] { return s.busy == 0; });
  }
  for (std::exception_ptr& e : s.errors)
    if (e) {
      std::exception_ptr first = e;
      for (std::exception_ptr& other : s.errors) other = nullptr;
      std::rethrow_exception(first);
    }
}

int available_threads() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  unsigned n = std::thread::hardware_concurrency();
  return n ? static_cast<int>(n) : 1;
}

}  // namespace gradus
