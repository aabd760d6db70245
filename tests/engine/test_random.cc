// Philox against the known answers of its authors' library (Random123), and what is drawn from it.

#include <cmath>

#include <gradus/random.h>

#include "../about.h"
#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

TEST_CASE("Philox4x32-10 gives its known answers") {
  using Words = std::array<uint32_t, 4>;
  CHECK(philox(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const uint64_t ones = ~uint64_t{0};
  CHECK(philox(ones, ones, ones) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  // The digits of pi: counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0.
  CHECK(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a generator is a function of seed, stream and position") {
  Rng a(5, 2), b(5, 2), other_seed(6, 2), other_stream(5, 3);
  uint64_t first = a.next_u64();
  CHECK(first == b.next_u64());
  CHECK(first != other_seed.next_u64());
  CHECK(first != other_stream.next_u64());
  for (int i = 0; i < 7; ++i) a.next_u32();
  Rng resumed(a.seed(), a.stream());
  resumed.seek(a.position());
  for (int i = 0; i < 10; ++i) CHECK(resumed.next_u32() == a.next_u32());
  a.seek(0);
  CHECK(a.next_u64() == first);
}

TEST_CASE("the first words of a generator are the first block") {
  Rng rng(0);
  CHECK(rng.next_u32() == 0x6627e8d5);
  CHECK(rng.next_u32() == 0xe169c58d);
  CHECK(rng.next_u32() == 0xbc57ac4c);
  CHECK(rng.next_u32() == 0x9b00dbd8);
}

TEST_CASE("splits differ from each other and from their origin") {
  Rng rng(9);
  Rng a = rng.split(0), b = rng.split(1), deeper = a.split(0);
  uint64_t words[] = {rng.next_u64(), a.next_u64(), b.next_u64(), deeper.next_u64()};
  for (int i = 0; i < 4; ++i)
    for (int k = i + 1; k < 4; ++k) CHECK(words[i] != words[k]);
}

TEST_CASE("distributions have their range, mean and deviation") {
  Rng rng(1);
  const int n = 20000;
  double sum = 0, squares = 0, lowest = 1, highest = 0, total = 0;
  for (int i = 0; i < n; ++i) {
    double u = rng.uniform();
    total += u;
    lowest = std::min(lowest, u);
    highest = std::max(highest, u);
    double z = rng.normal();
    sum += z;
    squares += z * z;
  }
  CHECK(lowest >= 0);
  CHECK(highest < 1);
  CHECK(total / n == about(0.5, 0.02));
  CHECK(std::abs(sum / n) < 0.03);
  CHECK(squares / n == about(1, 0.03));

  int64_t counts[3] = {};
  for (int i = 0; i < n; ++i) ++counts[rng.below(3)];
  for (int64_t c : counts) CHECK(static_cast<double>(c) / n == about(1 / 3.0, 0.05));
  for (int i = 0; i < 10; ++i) CHECK(rng.below(1) == 0);
}

TEST_CASE("tensors are drawn in both element types") {
  Rng a(3), b(3);
  Tensor x = Tensor::normal({100}, 5, 0.1, a, DType::f64), y = Tensor::normal({100}, 5, 0.1, b);
  CHECK(max_abs_difference(x, y.to(DType::f64)) < 1e-6);
  Tensor u = Tensor::uniform({1000}, -2, 3, a);
  for (double v : u.to_vector()) CHECK((v >= -2 && v <= 3));
  CHECK(error_of([&] { Tensor::uniform({2}, 0, 1, a, DType::i32); }) ==
        "[uniform] needs f32 or f64 numbers: i32");
}
