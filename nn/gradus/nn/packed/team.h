#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include <gradus/parallel.h>

namespace gradus::nn::packed {

/// The threads that share one step of decoding, or the caller alone. A step has phases of some ten
/// microseconds; between them the members wait for each other by spinning.
class Team {
 public:
  explicit Team(ThreadPool* pool) : pool_(pool) {}
  int size() const { return pool_ ? pool_->size() : 1; }

  /// job(member) on all of them. It must not throw: the others would wait for ever.
  void run(const std::function<void(int)>& job) {
    if (size() == 1) return job(0);
    pool_->run(job);
  }

  /// Returns when every member has called it.
  void wait() {
    if (size() == 1) return;
    uint32_t round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size()) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
      if (spins < 1 << 12) pause_thread();
      else std::this_thread::yield();  // more threads than processors
    }
  }

 private:
  ThreadPool* pool_;
  std::atomic<int> arrived_{0};
  std::atomic<uint32_t> round_{0};
};

/// A member's share of n things.
struct Share {
  int64_t begin, end;
  Share(int64_t n, int member, int members) : begin(n * member / members), end(n * (member + 1) / members) {}
};

}  // namespace gradus::nn::packed
