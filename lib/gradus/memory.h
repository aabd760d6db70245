#pragma once

#include <cstdint>
#include <memory>

namespace gradus {

/// 64-byte aligned memory from a caching allocator: what is freed is kept and handed out again, so that the
/// steady state of a training loop asks the system for nothing (a page given back to the system costs a fault
/// and a zeroing when it returns). Large blocks of one thread share segments of memory in huge pages, where
/// neighbours that are free join; a block goes back to the thread it came from, whoever frees it.
/// Thread-safe. The content of a new block is undefined.
/// @throws Error "[memory] there is no room for 100 bytes" when the system has no more, or all blocks would
///   exceed machine_memory(): a system gives out addresses for more, and ends the program that uses them.
std::shared_ptr<void> allocate(int64_t bytes);

/// Bytes that this process can use at most: memory and swap, or a lower limit of a container or the process.
int64_t machine_memory();

struct MemoryStats {
  /// Bytes handed out and not yet returned.
  int64_t in_use = 0;
  /// Bytes kept for reuse.
  int64_t cached = 0;
  /// Highest `in_use` so far.
  int64_t peak = 0;
  /// How often memory was handed out that the system had to give.
  int64_t system_allocations = 0;
};
MemoryStats memory_stats();

/// Gives all cached blocks back to the system.
void release_cached_memory();

}  // namespace gradus
