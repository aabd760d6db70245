#include <gradus/memory.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <new>
#include <vector>

namespace gradus {
namespace {

constexpr std::align_val_t kAlign{64};
constexpr int64_t kSmallest = 64;

// Four classes to an octave (64, 80, 96, 112, 128, 160, ...): at most a quarter of a block is wasted.
struct SizeClass {
  int index;
  int64_t bytes;
};

SizeClass size_class(int64_t bytes) {
  uint64_t n = static_cast<uint64_t>(std::max(bytes, kSmallest));
  int octave = std::bit_width(n) - 1;
  uint64_t step = uint64_t{1} << (octave - 2);
  uint64_t quarter = (n - (uint64_t{1} << octave) + step - 1) / step;  // 0..4
  return {octave * 4 + static_cast<int>(quarter), static_cast<int64_t>((uint64_t{1} << octave) + quarter * step)};
}

class Cache {
 public:
  static Cache& get() {
    static Cache* cache = new Cache;  // never destroyed: static tensors may outlive it otherwise
    return *cache;
  }

  void* take(const SizeClass& size) {
    std::lock_guard lock(mutex_);
    stats_.in_use += size.bytes;
    stats_.peak = std::max(stats_.peak, stats_.in_use);
    auto& list = free_[size.index];
    if (!list.empty()) {
      void* block = list.back();
      list.pop_back();
      stats_.cached -= size.bytes;
      return block;
    }
    ++stats_.system_allocations;
    return ::operator new(static_cast<size_t>(size.bytes), kAlign);
  }

  void give_back(void* block, const SizeClass& size) {
    std::lock_guard lock(mutex_);
    stats_.in_use -= size.bytes;
    stats_.cached += size.bytes;
    free_[size.index].push_back(block);
  }

  void release() {
    std::lock_guard lock(mutex_);
    for (auto& list : free_) {
      for (void* block : list) ::operator delete(block, kAlign);
      list.clear();
    }
    stats_.cached = 0;
  }

  MemoryStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  std::mutex mutex_;
  std::vector<void*> free_[64 * 4 + 5];
  MemoryStats stats_;
};

}  // namespace

std::shared_ptr<void> allocate(int64_t bytes) {
  SizeClass size = size_class(bytes);
  return {Cache::get().take(size), [size](void* block) { Cache::get().give_back(block, size); }};
}

MemoryStats memory_stats() { return Cache::get().stats(); }

void release_cached_memory() { Cache::get().release(); }

}  // namespace gradus
