#include <gradus/kernels/random.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

TEST_CASE("philox_words are philox's blocks") {
  on_every_target([] {
    // across a carry into the upper half of the counter, too
    for (const uint64_t first : {uint64_t{0}, uint64_t{5}, uint64_t{0xFFFFFFFD}}) {
      for (const int64_t blocks : {0, 1, 2, 3, 7, 8, 9, 37}) {
        std::vector<uint32_t> words(static_cast<size_t>(4 * blocks) + 1, 77);
        kernels::philox_words(0x123456789ABCDEF0u, 0xFEDCBA9876543210u, first, blocks, words.data());
        bool same = words.back() == 77;
        for (int64_t k = 0; k < blocks; ++k) {
          const auto one = philox(0x123456789ABCDEF0u, 0xFEDCBA9876543210u, first + static_cast<uint64_t>(k));
          same = same && std::equal(one.begin(), one.end(), words.begin() + 4 * k);
        }
        CHECK(same);
      }
    }
  });
}

TEST_CASE("filling is drawing one by one, from any position, to the last bit") {
  on_every_target([] {
    for (const uint64_t position : {0, 1, 2, 3, 6}) {
      for (const int64_t n : {0, 1, 2, 5, 9, 511, 512, 1023, 1025, 2050}) {
        CAPTURE(position);
        CAPTURE(n);
        Rng all(9, 4), single(9, 4);
        all.seek(position);
        single.seek(position);
        Row<float> uniform(n), normal(n), want_uniform(n), want_normal(n);
        kernels::fill_uniform(all, -0.3, 0.7, uniform.data(), n);
        for (int64_t i = 0; i < n; ++i) want_uniform[i] = static_cast<float>(single.uniform(-0.3, 0.7));
        CHECK(all.position() == single.position());
        kernels::fill_normal(all, 0.5, 2, normal.data(), n);
        for (int64_t i = 0; i < n; ++i) want_normal[i] = static_cast<float>(0.5 + 2 * single.normal());
        CHECK(uniform.same_bits(want_uniform));
        CHECK(normal.same_bits(want_normal));
        CHECK(uniform.intact());
        CHECK(normal.intact());
        CHECK(all.position() == single.position());
        CHECK(all.uniform() == single.uniform());
      }
    }
  });
}

TEST_CASE("a million normal numbers are the generator's own, next to the middle of two floats as well") {
  Rng all(3), single(3);
  const int64_t n = (5 << 18) + 3;  // shared between threads, in uneven parts
  Row<float> got(n), want(n);
  for (uint64_t position : {0, 3, 4}) {
    CAPTURE(position);
    all.seek(position);
    single.seek(position);
    kernels::fill_normal(all, 0, 1, got.data(), n);
    for (int64_t i = 0; i < n; ++i) want[i] = static_cast<float>(single.normal());
    CHECK(got.same_bits(want));
    CHECK(all.position() == single.position());
  }
  Row<double> wide(100);
  kernels::fill_normal(all, 1, 3, wide.data(), 100);
  bool same = true;
  for (int64_t i = 0; i < 100; ++i) same = same && wide[i] == 1 + 3 * single.normal();
  CHECK(same);
}
