#include <gradus/parallel.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif

namespace gradus {
namespace {

constexpr int64_t kPatience = 4000;  // pauses, some 50 to 200 us

#ifdef __linux__
int this_processor() { return sched_getcpu(); }

// Moves this thread to another processor if it stands on `taken`; afterwards it is free to go anywhere.
// The system never spreads threads that wait for each other without sleeping, once they are on one processor.
void leave(int taken) {
  cpu_set_t allowed, others;
  if (taken < 0 || sched_getcpu() != taken || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  others = allowed;
  CPU_CLR(taken, &others);
  if (CPU_COUNT(&others) == 0) return;
  if (sched_setaffinity(0, sizeof(others), &others) == 0) sched_setaffinity(0, sizeof(allowed), &allowed);
}
#else
int this_processor() { return -1; }  // not known
void leave(int) {}
#endif

// Keeps glibc from shrinking a thread's heap and growing it again, by some pages in the first thread and by one
// in others, with a system call each time in the middle of a step. Blocks allocated and freed leave room for a
// graph's small objects. One more block behind them, kept while the thread lives, keeps that room in the heap.
class SmallMemory {
 public:
  SmallMemory() {
    void* blocks[8];
    for (void*& block : blocks) block = std::malloc(64 << 10);
    last_ = std::malloc(64);
    for (void* block : blocks) std::free(block);
  }
  ~SmallMemory() { std::free(last_); }
  SmallMemory(const SmallMemory&) = delete;

 private:
  void* volatile last_;
};

thread_local const void* job_of = nullptr;  // the pool whose job this thread is at

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable wake, finished;
  const std::function<void(int)>* job = nullptr;
  std::atomic<uint64_t> round{0};
  std::atomic<int> busy{0};
  bool stop = false;
  int64_t patience = 0;
  int caller_processor = -1;  // of the job
  Caller place;               // that the job's errors name
  SmallMemory room;           // the caller's
  std::vector<std::exception_ptr> errors;
  std::vector<std::thread> threads;

  ~State() {
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (std::thread& t : threads) t.join();
  }

  void guarded(const std::function<void(int)>& f, int worker) {
    const void* outer = std::exchange(job_of, this);
    try {
      At at(place);
      f(worker);
    } catch (...) {
      errors[static_cast<size_t>(worker)] = std::current_exception();
    }
    job_of = outer;
  }

  void loop(int worker) {
    uint64_t seen = 0;
    SmallMemory memory;
    for (;;) {
      watch([&] { return round != seen; });
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stop || round != seen; });
        if (stop) return;
        seen = round;
      }
      if (patience > 0) leave(caller_processor);
      guarded(*job, worker);
      if (--busy == 0) {
        std::lock_guard lock(mutex);  // the caller is either before its look at `busy` or asleep
        finished.notify_one();
      }
    }
  }

  // The next job follows soon within a training step, and to sleep and be woken takes as long as a small job.
  template <class Ready>
  void watch(const Ready& ready) const {
    for (int64_t i = 0; i < patience && !ready(); ++i) pause_thread();
  }
};

ThreadPool::ThreadPool(int threads, Caller caller) : state_(std::make_unique<State>()) {
  if (threads < 1) fail(caller, "ThreadPool", "needs at least one thread: " + std::to_string(threads));
  if (threads <= available_threads()) state_->patience = kPatience;
  try {
    for (int i = 1; i < threads; ++i) state_->threads.emplace_back([s = state_.get(), i] { s->loop(i); });
  } catch (const std::exception&) {  // a limit on threads, or on memory: those that there are do the work
  }
  state_->errors.resize(state_->threads.size() + 1);
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const { return static_cast<int>(state_->errors.size()); }

void ThreadPool::run(const std::function<void(int)>& job) {
  State& s = *state_;
  if (job_of == &s) fail("ThreadPool", "a job cannot run another on its own pool: it would wait for itself");
  {
    std::lock_guard lock(s.mutex);
    s.job = &job;
    s.place = At::current();
    s.caller_processor = this_processor();
    s.busy = size() - 1;
    ++s.round;
  }
  s.wake.notify_all();
  s.guarded(job, 0);
  s.watch([&] { return s.busy == 0; });
  {
    std::unique_lock lock(s.mutex);
    s.finished.wait(lock, [&] { return s.busy == 0; });
  }
  std::exception_ptr first;
  for (std::exception_ptr& e : s.errors)
    if (std::exception_ptr error = std::exchange(e, nullptr); !first) first = error;
  if (first) std::rethrow_exception(first);
}

void pause_thread() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
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
