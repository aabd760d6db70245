// The caching allocator: a training loop's steady state asks the system for nothing.

#include <algorithm>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include <gradus/memory.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>
#include <gradus/tensor.h>

#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

TEST_CASE("blocks are aligned and come back") {
  for (int64_t bytes : {0, 1, 63, 64, 65, 1000, 4097, 1 << 20}) {
    auto block = allocate(bytes);
    CHECK(reinterpret_cast<uintptr_t>(block.get()) % 64 == 0);
    void* address = block.get();
    block.reset();
    CHECK(allocate(bytes).get() == address);
  }
}

TEST_CASE("a loop that repeats itself allocates from the system only at first") {
  Parameter w(Tensor::ones({64, 32}), "w");
  auto step = [&] {
    Gradients grads = backward(mean(tanh(w.var() * 0.5 + 1)));
    Tensor g = grads[w];
    w.update([&](const Tensor& t) {
      for (int64_t i = 0; i < t.numel(); ++i) t.f32()[i] -= g.f32()[i];
    });
  };
  for (int i = 0; i < 3; ++i) step();
  const MemoryStats before = memory_stats();
  for (int i = 0; i < 50; ++i) step();
  const MemoryStats after = memory_stats();
  CHECK(after.system_allocations == before.system_allocations);
  CHECK(after.in_use == before.in_use);
  CHECK(after.peak == before.peak);
}

TEST_CASE("the numbers in the statistics") {
  release_cached_memory();
  const MemoryStats before = memory_stats();
  CHECK(before.cached == 0);
  Tensor t = Tensor::zeros({1000});  // 4000 bytes, of a class that is at most a quarter larger
  int64_t held = memory_stats().in_use - before.in_use;
  CHECK(held >= 4000);
  CHECK(held <= 5000);
  Tensor view = t.reshape({10, 100});
  t = Tensor();
  CHECK(memory_stats().in_use == before.in_use + held);
  view = Tensor();
  CHECK(memory_stats().in_use == before.in_use);
  CHECK(memory_stats().cached == held);
  CHECK(memory_stats().peak >= before.in_use + held);
  release_cached_memory();
  CHECK(memory_stats().cached == 0);
}

TEST_CASE("large blocks that come back are joined, whatever their order") {
  constexpr int64_t kPiece = 1 << 20;
  for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    release_cached_memory();
    std::vector<std::shared_ptr<void>> pieces;
    for (int i = 0; i < 3; ++i) pieces.push_back(allocate(kPiece));
    for (int i : order) pieces[static_cast<size_t>(i)].reset();
    CHECK(memory_stats().cached == 3 * kPiece);
    const int64_t asked = memory_stats().system_allocations;
    auto whole = allocate(3 * kPiece);
    CHECK(memory_stats().system_allocations == asked);
    CHECK(memory_stats().cached == 0);
  }
}

TEST_CASE("a block goes back to the thread it came from") {
  release_cached_memory();
  auto block = allocate(3 << 20);
  void* address = block.get();
  int64_t asked = 0, asked_there = 0;
  std::thread([&] {
    block.reset();
    asked = memory_stats().system_allocations;
    auto another = allocate(3 << 20);  // not ours: this thread has to ask
    asked_there = memory_stats().system_allocations;
    CHECK(another.get() != address);
  }).join();
  CHECK(asked_there == asked + 1);
  CHECK(allocate(3 << 20).get() == address);
  CHECK(memory_stats().system_allocations == asked_there);
}

TEST_CASE("blocks never overlap, and keep their numbers when the rest is given back") {
  struct Held {
    std::shared_ptr<void> block;
    int64_t bytes;
    uint8_t mark;
  };
  std::mt19937 rng(31);
  std::vector<Held> held;
  auto whole = [](const Held& h) {
    const auto* p = static_cast<const uint8_t*>(h.block.get());
    return std::all_of(p, p + h.bytes, [&](uint8_t v) { return v == h.mark; });
  };
  for (int i = 0; i < 600; ++i) {
    if (held.size() > 20 || (!held.empty() && rng() % 3 == 0)) {
      size_t at = rng() % held.size();
      CHECK(whole(held[at]));
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      int64_t bytes = int64_t{1} << (rng() % 20);
      bytes += static_cast<int64_t>(rng() % static_cast<uint32_t>(bytes));
      held.push_back({allocate(bytes), bytes, static_cast<uint8_t>(i)});
      std::fill_n(static_cast<uint8_t*>(held.back().block.get()), bytes, held.back().mark);
      CHECK(reinterpret_cast<uintptr_t>(held.back().block.get()) % 64 == 0);
    }
    if (i % 100 == 99) release_cached_memory();
  }
  CHECK(std::all_of(held.begin(), held.end(), whole));
}
