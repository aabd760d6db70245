// Sizes that no machine has room for, and machines that give no more memory or threads: an Error that names
// what was asked for, or fewer threads; never a crash.

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>

#include <gradus/kernels/products/packed_gemm.h>
#include <gradus/kernels/random.h>
#include <gradus/memory.h>
#include <gradus/numeric.h>
#include <gradus/ops/concat_rows.h>
#include <gradus/ops/embedding.h>
#include <gradus/ops/scaled_dot_product_attention.h>
#include <gradus/ops/shape.h>
#include <gradus/parallel.h>
#include <gradus/random.h>

#include "../check.h"
#include "../skip.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

constexpr int64_t kHuge = int64_t{1} << 61;

// f() in a child process that may take `more` bytes of addresses beside what it has; what f() returns, or -1
// when the child was ended by a signal. It gives up after a while: a deadlock must not look like work.
int with_memory_limit(int64_t more, const std::function<int()>& f) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + more);
    const rlimit limit{most, most};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(99);
    _exit(f());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a shape that nobody could count is refused by its sizes") {
  CHECK(error_of([] { Tensor::ones({kHuge}); }) ==
        "[shape] too many elements, at most 2^56: [2305843009213693952]");
  CHECK(error_of([] { Tensor::ones({2 * kHuge}); }) ==
        "[shape] too many elements, at most 2^56: [4611686018427387904]");
  CHECK(error_of([] { Shape{int64_t{1} << 32, int64_t{1} << 32}; }) ==
        "[shape] too many elements, at most 2^56: [4294967296, 4294967296]");
  CHECK(error_of([] { Shape{int64_t{1} << 31, int64_t{1} << 31, 4}; }) ==
        "[shape] too many elements, at most 2^56: [2147483648, 2147483648, 4]");
  CHECK(error_of([] { Shape{3, 5, 7, INT64_MAX}; }) ==
        "[shape] too many elements, at most 2^56: [3, 5, 7, 9223372036854775807]");
  CHECK(error_of([] { Shape{4, INT64_MIN}; }) ==
        "[shape] an axis cannot have the negative size -9223372036854775808");
  // An axis of size 0 hides nothing: strides are products of the others.
  CHECK(error_of([] { Shape{kHuge, 8, 0}; }) ==
        "[shape] too many elements, at most 2^56: [2305843009213693952, 8, 0]");
  Shape s{int64_t{1} << 55, 0, 2};
  CHECK(s.numel() == 0);
  CHECK(Shape{int64_t{1} << 55, 2}.numel() == Shape::kMaxNumel);
  CHECK(error_of([&] { s.append(2); }) ==
        "[shape] too many elements, at most 2^56: [36028797018963968, 0, 2, 2]");
  Shape t{2, 2};
  CHECK(error_of([&] { t.set(0, kHuge); }) ==
        "[shape] too many elements, at most 2^56: [2305843009213693952, 2]");
  Shape u{2, 2};
  CHECK(error_of([&] { u.set(1, -1); }) == "[shape] an axis cannot have the negative size -1");
  CHECK(s.dims() == 3);  // as it was
  CHECK(u == Shape{2, 2});
  const int64_t negative[] = {2, -3};
  CHECK_FALSE(Shape::countable(negative, 2));
}

TEST_CASE("no function makes such a shape of smaller ones") {
  const Shape tall{int64_t{1} << 31, 1}, wide{1, int64_t{1} << 31};
  CHECK(error_of([&] { broadcast(tall, wide, "add"); }) ==
        "[shape] too many elements, at most 2^56: [2147483648, 2147483648]");
  Tensor x = Tensor::zeros({2, 3});
  CHECK(error_of([&] { x.reshape({kHuge, kHuge, -1}); }) ==
        "[shape] too many elements, at most 2^56: [2305843009213693952, 2305843009213693952, 1]");
  CHECK(error_of([&] { x.reshape({-3, -1}); }) == "[shape] an axis cannot have the negative size -3");
  CHECK(error_of([&] { x.reshape({4, -1}); }) == "[reshape] axis 1 cannot be worked out: 6 elements over 4");
  CHECK(error_of([&] { x.reshape({-1, 0}); }) == "[reshape] axis 0 cannot be worked out: 6 elements over 0");
  // 2^62 times 4 is 0, and then some: 6 elements again, were it not looked at
  CHECK(error_of([&] { x.reshape({2 * kHuge, 4, 6}); }) ==
        "[shape] too many elements, at most 2^56: [4611686018427387904, 4, 6]");
  Var v = x;
  CHECK(error_of([&] { expand(v, {kHuge, 2, 3}); }) ==
        "[shape] too many elements, at most 2^56: [2305843009213693952, 2, 3]");
  // sizes whose sum is that of the axis only modulo 2^64
  CHECK(
      error_of([&] {
        split(v, {INT64_MAX, INT64_MAX, 5}, 1);
      }) ==
      "[split] sizes must add up to axis 1: shape [2, 3], sizes [9223372036854775807, 9223372036854775807, 5]");
  CHECK(error_of([&] { slice(v, 1, 1, INT64_MAX); }) ==
        "[slice] entries 1 to 9223372036854775807 are outside axis 1: shape [2, 3]");
  Var none = Tensor::zeros({int64_t{1} << 55, 0});
  CHECK(error_of([&] { concat({none, none, none}, 0); }) ==
        "[shape] too many elements, at most 2^56: [108086391056891904, 0]");
  CHECK(error_of([&] { stack({none, none, none}, 2); }) ==
        "[shape] too many elements, at most 2^56: [36028797018963968, 0, 3]");
  CHECK(error_of([&] { embedding(Tensor::zeros({2, 0}), Tensor(Shape{int64_t{1} << 20, 0}, DType::i32)); }) ==
        "(no error)");
  // three times this is 2 modulo 2^64, which divides the width
  Var qkv = Tensor::zeros({2, 1, 6});
  CHECK(error_of([&] { packed_self_attention(qkv, {.heads = 6148914691236517206}); }) ==
        "[scaled_dot_product_attention] queries, keys, values must divide into 6148914691236517206 heads: 6 "
        "columns "
        "of 3 operands");
  Tensor length = Tensor::from_ids({2}, {1 << 30, 1 << 30});
  CHECK(error_of([&] { real_rows(length, kHuge); }) ==
        "[real_rows] there are more rows than i32 can number: 1073741824 times 2");
  CHECK(real_rows(Tensor::from_ids({2}, {1, 0}), kHuge).to_vector() == Numbers{0});
}

TEST_CASE("what the machine has no room for is refused with shape and bytes") {
  CHECK(machine_memory() >= int64_t{64} << 20);
  CHECK(machine_memory() < int64_t{1} << 50);
  CHECK(error_of([] { Tensor::zeros({int64_t{1} << 50}); }) ==
        "[tensor] there is no room for 4503599627370496 bytes: [1125899906842624] f32");
  CHECK(error_of([] { Tensor::ones({Shape::kMaxNumel}, DType::f64); }) ==
        "[tensor] there is no room for 576460752303423488 bytes: [72057594037927936] f64");
  const int64_t most = machine_memory();
  CHECK(error_of([&] { Tensor({most / 8 + 1, 8}, DType::u8); }) ==
        "[tensor] there is no room for " + std::to_string((most / 8 + 1) * 8) + " bytes: [" +
            std::to_string(most / 8 + 1) + ", 8] u8");
  for (int64_t bytes : {int64_t{-1}, INT64_MIN, INT64_MAX, most + 1})
    CHECK(error_of([&] { allocate(bytes); }) ==
          "[memory] there is no room for " + std::to_string(bytes) + " bytes");
  // nothing of it was counted, and life goes on
  const MemoryStats before = memory_stats();
  CHECK(error_of([&] { allocate(most); }) != "(no error)");
  CHECK(memory_stats().in_use == before.in_use);
  CHECK(Tensor::ones({1000}).at(999) == 1);
}

TEST_CASE(
    "a system that gives no more memory: an Error, at every size of block, and what there was stays usable") {
  if (!memory_can_be_limited()) return;
  auto until_refused = [](int64_t numbers) {
    return [numbers] {
      std::vector<Tensor> held;
      try {
        for (;;) held.push_back(Tensor::ones({numbers}));
      } catch (const Error& e) {
        if (!contains(e.what(), "there is no room for " + std::to_string(4 * numbers) + " bytes")) return 1;
      } catch (const std::bad_alloc&) {
        return 2;  // the list of tensors itself
      }
      held.resize(held.size() / 2);
      Tensor again = Tensor::ones({numbers});
      return again.at(numbers - 1) == 1 ? 0 : 3;
    };
  };
  CHECK(with_memory_limit(int64_t{900} << 20, until_refused(1 << 22)) == 0);
  CHECK(with_memory_limit(int64_t{900} << 20, until_refused(100000)) == 0);
  const int small = with_memory_limit(int64_t{40} << 20, until_refused(16));
  CHECK((small == 0 || small == 2));
  CHECK(with_memory_limit(int64_t{100} << 20, [] {
          try {
            std::vector<float> w(1000);
            kernels::PackedMatrix<float> packed(kernels::PackedMatrix<float>::Use::transposed, 1 << 16, 1 << 16,
                                                w.data(), 1 << 16);
          } catch (const Error& e) {
            return contains(e.what(), "[memory] there is no room for") ? 0 : 1;
          }
          return 2;
        }) == 0);
}

TEST_CASE("a pool without the threads it was to have works with those there are") {
  if (!memory_can_be_limited()) return;
  // A thread's stack is 8 MB of addresses, where nobody says otherwise.
  CHECK(with_memory_limit(int64_t{30} << 20, [] {
          ThreadPool pool(64);
          const int size = pool.size();
          if (size < 1 || size > 8) return 1;
          for (int round = 0; round < 20; ++round) {
            std::vector<int> calls(64);
            pool.run([&](int worker) { ++calls[static_cast<size_t>(worker)]; });
            for (int i = 0; i < 64; ++i)
              if (calls[static_cast<size_t>(i)] != (i < size)) return 2;
          }
          return 0;
        }) == 0);
  // None at all: glibc keeps stacks of threads that have ended, but none of this size.
  CHECK(with_memory_limit(int64_t{1} << 20, [] {
          pthread_attr_t large;
          pthread_attr_init(&large);
          pthread_attr_setstacksize(&large, size_t{1} << 30);
          pthread_setattr_default_np(&large);
          ThreadPool pool(3);
          int calls = 0;
          pool.run([&](int worker) { calls += worker == 0 ? 1 : 100; });
          return pool.size() == 1 && calls == 1 ? 0 : 1;
        }) == 0);
  // Numbers that several threads would draw are all drawn.
  Tensor all({(5 << 20) + 7}, DType::f32), alone = Tensor::full(all.shape(), -1);
  Rng rng(5);
  kernels::fill_uniform(rng, 0, 1, all.f32(), all.numel());
  CHECK(with_memory_limit(int64_t{1} << 20, [&] {
          Rng own(5);
          kernels::fill_uniform(own, 0, 1, alone.f32(), alone.numel());
          return std::memcmp(alone.raw(), all.raw(), static_cast<size_t>(all.bytes())) == 0 ? 0 : 1;
        }) == 0);
}
