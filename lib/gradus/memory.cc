#include <gradus/memory.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include <gradus/error.h>

#ifdef __linux__
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#endif

// Small blocks are kept in free lists by size. Large ones are cut out of segments of addresses by best fit,
// and a freed one is joined with its free neighbours: buffers of all sizes reuse the same memory. (Free lists
// alone left a fifth of a training step's memory idle.) Each thread has an arena, to which its blocks return
// whoever frees them: neither what it asks of the system nor what a steady state needs depends on others.

namespace gradus {
namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kLarge = int64_t{32} << 10;   // from here on cut out of segments
constexpr int64_t kPage = 4096;                 // and a multiple of this
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kSegment = int64_t{256} << 20;  // address space; memory only where it has been touched

// Of small blocks, four to an octave (64, 80, 96, 112, 128, ...): at most a quarter of a block is wasted.
struct SizeClass {
  int index;
  int64_t bytes;
};

SizeClass size_class(int64_t bytes) {
  uint64_t n = static_cast<uint64_t>(std::max(bytes, kAlign));
  int octave = static_cast<int>(std::bit_width(n)) - 1;
  uint64_t step = uint64_t{1} << (octave - 2);
  uint64_t quarter = (n - (uint64_t{1} << octave) + step - 1) / step;  // 0..4
  return {octave * 4 + static_cast<int>(quarter),
          static_cast<int64_t>((uint64_t{1} << octave) + quarter * step)};
}

void* aligned_block(int64_t alignment, int64_t bytes) {
  void* block = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(bytes));
  if (!block) throw std::bad_alloc();
  return block;
}

/// Segments ask for huge pages, once: a product of matrices walks rows that lie a page or more apart, and
/// with pages of 4 KB the processor's table of addresses (TLB) is too short for a block of them.
#ifdef MADV_HUGEPAGE
char* segment_from_system(int64_t bytes) {
  int64_t whole = bytes + kHugePage;  // to begin at a huge page
  void* found = ::mmap(nullptr, static_cast<size_t>(whole), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) throw std::bad_alloc();
  char* begin = static_cast<char*>(found);
  int64_t before = (kHugePage - reinterpret_cast<intptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) ::munmap(begin, static_cast<size_t>(before));
  ::munmap(begin + before + bytes, static_cast<size_t>(kHugePage - before));
  ::madvise(begin + before, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a wish: without it, ordinary pages
  return begin + before;
}

void segment_to_system(char* begin, int64_t bytes) { ::munmap(begin, static_cast<size_t>(bytes)); }

void pages_to_system(char* begin, int64_t bytes) {
  ::madvise(begin, static_cast<size_t>(bytes), MADV_DONTNEED);
}
#else
char* segment_from_system(int64_t bytes) { return static_cast<char*>(aligned_block(kPage, bytes)); }
void segment_to_system(char* begin, int64_t) { std::free(begin); }
void pages_to_system(char*, int64_t) {}
#endif

// Free memory of one thread's segments. "Used" has been touched and keeps its pages; "fresh" has none: to
// touch it costs a fault and a zeroing, so it counts as asking the system.
class Arena {
 public:
  struct Taken {
    void* block;
    bool asked;       // the system
    int64_t recycled;  // bytes that had been touched before
  };

  Taken take_small(const SizeClass& size) {
    auto& list = small_[size.index];
    if (!list.empty()) {
      void* block = list.back();
      list.pop_back();
      return {block, false, size.bytes};
    }
    return {aligned_block(kAlign, (size.bytes + kAlign - 1) / kAlign * kAlign), true, 0};
  }
  void give_back_small(void* block, const SizeClass& size) {
    try {
      small_[size.index].push_back(block);
    } catch (const std::bad_alloc&) {  // no room to remember it by
      std::free(block);
    }
  }

  Taken take_large(int64_t bytes) {
    size_t best = used_.size();
    for (size_t i = 0; i < used_.size(); ++i)
      if (used_[i].bytes >= bytes && (best == used_.size() || used_[i].bytes < used_[best].bytes)) best = i;
    if (best == used_.size()) return take_fresh(bytes);
    char* begin = used_[best].begin;
    if (used_[best].bytes > bytes) used_[best] = {begin + bytes, used_[best].bytes - bytes};
    else used_.erase(used_.begin() + static_cast<std::ptrdiff_t>(best));
    return {begin, false, bytes};
  }

  void give_back_large(char* begin, int64_t bytes) {
    auto next = behind(begin), before = next == used_.begin() ? used_.end() : std::prev(next);
    bool joins_next = next != used_.end() && begin + bytes == next->begin;
    if (before != used_.end() && before->end() == begin) {
      before->bytes += bytes + (joins_next ? next->bytes : 0);
      if (joins_next) used_.erase(next);
    } else if (joins_next) {
      *next = {begin, bytes + next->bytes};
    } else {
      try {
        used_.insert(next, {begin, bytes});
      } catch (const std::bad_alloc&) {  // its memory goes, its addresses are lost
        pages_to_system(begin, bytes);
      }
    }
  }

  void release() {
    for (auto& list : small_) {
      for (void* block : list) std::free(block);
      list.clear();
    }
    for (const Piece& piece : used_) {
      pages_to_system(piece.begin, piece.bytes);
      fresh_[piece.begin] = piece.bytes;
    }
    used_.clear();
    for (auto at = fresh_.begin(); at != fresh_.end();) {
      auto next = std::next(at), segment = segments_.find(at->first);
      if (next != fresh_.end() && at->first + at->second == next->first) {
        at->second += next->second;
        fresh_.erase(next);
      } else if (segment != segments_.end() && segment->second == at->second) {
        segment_to_system(at->first, at->second + kPage);
        segments_.erase(segment);
        at = fresh_.erase(at);
      } else {
        ++at;
      }
    }
  }

 private:
  // From the lowest fresh memory that suffices together with the used piece in front of it.
  Taken take_fresh(int64_t bytes) {
    for (int round = 0; round < 2; ++round) {
      for (auto [begin, size] : fresh_) {
        auto before = behind(begin);
        bool joins = before != used_.begin() && (--before)->end() == begin;
        int64_t in_front = joins ? before->bytes : 0;
        if (in_front + size < bytes) continue;
        char* block = begin - in_front;
        if (joins) used_.erase(before);
        fresh_.erase(begin);
        if (in_front + size > bytes) fresh_[block + bytes] = in_front + size - bytes;
        return {block, true, in_front};
      }
      int64_t size = (std::max(bytes + kPage, kSegment) + kHugePage - 1) / kHugePage * kHugePage;
      char* segment = segment_from_system(size);
      // The last page stays unused, so that pieces of two segments never touch.
      fresh_[segment] = segments_[segment] = size - kPage;
    }
    throw std::bad_alloc();
  }

  struct Piece {
    char* begin;
    int64_t bytes;
    char* end() const { return begin + bytes; }
  };

  // The first used piece that begins behind `address`.
  std::vector<Piece>::iterator behind(const char* address) {
    return std::ranges::upper_bound(used_, address, std::less<>(), &Piece::begin);
  }

  // By size class: kLarge = 2^15 ends before class 64.
  std::vector<void*> small_[64];
  // By address; some dozens, which a vector holds without asking for memory itself.
  std::vector<Piece> used_;
  std::map<char*, int64_t> fresh_, segments_;
};

class Cache {
 public:
  static Cache& get() {
    static Cache* cache = new Cache;  // never destroyed: static tensors may outlive it otherwise
    return *cache;
  }

  std::shared_ptr<void> take(int64_t bytes) {
    Arena* arena = mine();
    SizeClass size;
    Arena::Taken taken;
    {
      std::lock_guard lock(mutex_);
      if (bytes < 0 || bytes > most_ - stats_.in_use) throw std::bad_alloc();
      bool large = bytes > kLarge;
      size = large ? SizeClass{-1, (bytes + kPage - 1) / kPage * kPage} : size_class(bytes);
      taken = large ? arena->take_large(size.bytes) : arena->take_small(size);
      stats_.in_use += size.bytes;
      stats_.peak = std::max(stats_.peak, stats_.in_use);
      stats_.system_allocations += taken.asked;
      stats_.cached -= taken.recycled;
    }
    // Not under the lock: where there is no memory for the count of its users, the block is given back.
    return {taken.block, [arena, size](void* block) { get().give_back(arena, block, size); }};
  }

  void release() {
    std::lock_guard lock(mutex_);
    for (auto& arena : arenas_) arena->release();
    stats_.cached = 0;
  }

  MemoryStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  // The arena of this thread. Those of threads that have ended go to new ones.
  static Arena* mine() {
    static constexpr auto end_lease = [](Arena* arena) {
      std::lock_guard lock(get().mutex_);
      get().idle_.push_back(arena);
    };
    thread_local const std::unique_ptr<Arena, decltype(end_lease)> arena(get().lease());
    return arena.get();
  }
  Arena* lease() {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      arenas_.push_back(std::make_unique<Arena>());
      idle_.reserve(arenas_.size());  // an ending thread gives its own back, and cannot fail
      idle_.push_back(arenas_.back().get());
    }
    Arena* arena = idle_.back();
    idle_.pop_back();
    return arena;
  }

  void give_back(Arena* arena, void* block, const SizeClass& size) {
    std::lock_guard lock(mutex_);
    stats_.in_use -= size.bytes;
    stats_.cached += size.bytes;
    if (size.index < 0) arena->give_back_large(static_cast<char*>(block), size.bytes);
    else arena->give_back_small(block, size);
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<Arena*> idle_;
  MemoryStats stats_;
  const int64_t most_ = machine_memory();
};

}  // namespace

int64_t machine_memory() {
  int64_t most = std::numeric_limits<int64_t>::max() / 2;
#ifdef __linux__
  const auto lower = [&](uint64_t limit) {
    if (limit < static_cast<uint64_t>(most)) most = static_cast<int64_t>(limit);
  };
  struct sysinfo machine;
  if (::sysinfo(&machine) == 0) lower(uint64_t{machine.mem_unit} * (machine.totalram + machine.totalswap));
  // A container's limit, under either version of control groups; "max" is no number.
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream in(file);
    if (uint64_t limit; in >> limit) lower(limit);
  }
  for (auto resource : {RLIMIT_AS, RLIMIT_DATA})
    if (struct rlimit limit; ::getrlimit(resource, &limit) == 0) lower(limit.rlim_cur);
#endif
  return most;
}

std::shared_ptr<void> allocate(int64_t bytes) {
  try {
    return Cache::get().take(bytes);
  } catch (const std::bad_alloc&) {
    fail("memory", "there is no room for " + std::to_string(bytes) + " bytes");
  }
}

MemoryStats memory_stats() { return Cache::get().stats(); }

void release_cached_memory() { Cache::get().release(); }

}  // namespace gradus
