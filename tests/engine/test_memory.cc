// The caching allocator: a training loop's steady state asks the system for nothing.

#include <cstdint>

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
