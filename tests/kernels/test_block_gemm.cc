#include <gradus/kernels/products/behind_gemm.h>
#include <gradus/kernels/products/gemm.h>

#include <thread>

#include "product.h"

using namespace gradus;
using namespace kernel_test;

namespace {

struct Sizes {
  int64_t m, n, k;
};

void check_block(const Product& p) {
  check_product(p, [](auto... all) { kernels::block_gemm(all...); });
}

/// False, and the case is skipped, where block_gemm is the BLAS.
bool has_tiles() {
  if (kernels::use_block_gemm(512, 512, 512)) return true;
  gradus::testing::skipped("this CPU has no AVX-512");
  return false;
}

}  // namespace

TEST_CASE("block gemm: any shape, every transpose, writing and adding") {
  if (!has_tiles()) return;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const int64_t m : {0, 1, 2, 7, 8, 9, 12, 17, 64, 65, 66})
        check_block({ta, tb, m, 37, 9, m % 2 == 1});
      for (const int64_t n : {0, 1, 3, 4, 5, 8, 15, 16, 17, 31, 33, 48, 49, 63, 64, 65, 96, 113}) {
        check_block({ta, tb, 11, n, 21, n % 2 == 1, 0.5f});
      }
      for (const int64_t k : {0, 1, 3, 4, 5, 15, 16, 17, 130}) check_block({ta, tb, 10, 20, k, k % 2 == 1, -2});
      // more than one block of k, of rows, of columns
      check_block({ta, tb, 13, 50, 515});
      check_block({ta, tb, 150, 21, 70, true});
      check_block({ta, tb, 9, 800, 33, false, 1.5f});
      check_block({ta, tb, 70, 1601, 260, true});
    }
    check_block({ta, ta, ta ? 1000 : 20, 40, ta ? 20 : 1000, false, 1, 24});  // rows of A 4 KB apart
  }
}

TEST_CASE("block gemm: every remainder of rows meets every remainder of columns and depths") {
  if (!has_tiles()) return;
  // a tile has 4 or 8 rows, a panel three vectors of 1 to 16 columns, a piece of packed rows 4 or 16
  for (int64_t m = 1; m <= 17; ++m) {
    for (int64_t n = 1; n <= 65; n += m % 3 + 1) {
      check_block({m % 2 == 1, n % 2 == 1, m, n, 1 + (m * 7 + n) % 19, (m + n) % 3 == 0});
    }
  }
}

TEST_CASE("block gemm: right at the sizes of a training step, where gemm takes it if it is the faster one") {
  kernels::amx_allow(false);
  std::mt19937 rng(74);
  for (const Sizes& s :
       {Sizes{320, 384, 64}, Sizes{384, 64, 320}, Sizes{240, 2000, 128}, Sizes{300, 128, 2000}}) {
    REQUIRE(s.m * s.n * s.k >= 1 << 20);
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const Row<float> a = Row<float>::random(s.m * s.k, rng), b = Row<float>::random(s.k * s.n, rng);
        Row<double> wide_a(a.size()), wide_b(b.size()), want(s.m * s.n);
        std::copy_n(a.data(), a.size(), wide_a.data());
        std::copy_n(b.data(), b.size(), wide_b.data());
        const int64_t lda = ta ? s.m : s.k, ldb = tb ? s.k : s.n;
        Row<float> mine(s.m * s.n), blas(s.m * s.n), chosen(s.m * s.n);
        kernels::block_gemm(ta, tb, s.m, s.n, s.k, 1, a.data(), lda, b.data(), ldb, false, mine.data(), s.n);
        kernels::blas_gemm(ta, tb, s.m, s.n, s.k, 1.0f, a.data(), lda, b.data(), ldb, 0.0f, blas.data(), s.n);
        kernels::gemm(ta, tb, s.m, s.n, s.k, 1.0f, a.data(), lda, b.data(), ldb, 0.0f, chosen.data(), s.n);
        kernels::gemm(ta, tb, s.m, s.n, s.k, 1.0, wide_a.data(), lda, wide_b.data(), ldb, 0.0, want.data(),
                      s.n);
        const double scale = std::sqrt(double(s.k));
        CHECK(worst_error(mine, want, scale) < tolerance<float>());
        CHECK(chosen.same_bits(kernels::use_block_gemm(s.m, s.n, s.k) ? mine : blas));
      }
    }
  }
  kernels::amx_allow(true);
}

TEST_CASE("block gemm: the same bits every time, from every thread") {
  std::mt19937 rng(75);
  const int64_t m = 90, n = 130, k = 300;
  const Row<float> a = Row<float>::random(m * k, rng), b = Row<float>::random(n * k, rng);
  Row<float> first(m * n), second(m * n);
  auto run = [&](Row<float>& c) {
    kernels::block_gemm(true, true, m, n, k, 1, a.data(), m, b.data(), k, false, c.data(), n);
  };
  std::thread other([&] { run(second); });
  run(first);
  other.join();
  CHECK(first.same_bits(second));
}

namespace {

/// The nearest number of eight bits: bfloat16.
float rounded(float x) {
  const int exponent = std::ilogb(x) - 7;
  return std::scalbn(std::nearbyint(std::scalbn(x, -exponent)), exponent);
}

}  // namespace

TEST_CASE("block gemm in bfloat16 is that of rounded numbers") {
  if (!kernels::bf16_ready()) return gradus::testing::skipped("this CPU has no AVX512_BF16");
  std::mt19937 rng(76);
  for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{9, 50, 2}, Sizes{17, 65, 33}, Sizes{300, 40, 515},
                         Sizes{64, 1601, 31}, Sizes{33, 47, 1300}}) {
    for (int way = 0; way < 8; ++way) {
      const bool ta = way & 1, tb = way & 2, add = way & 4;
      CAPTURE(s.m);
      CAPTURE(s.n);
      CAPTURE(s.k);
      CAPTURE(way);
      const int64_t lda = (ta ? s.m : s.k) + 3, ldb = (tb ? s.k : s.n) + 1, ldc = s.n + 2;
      const Row<float> a = Row<float>::random_rows(ta ? s.k : s.m, lda - 3, lda, rng),
                       b = Row<float>::random_rows(tb ? s.n : s.k, ldb - 1, ldb, rng);
      Row<float> c = Row<float>::random(s.m * ldc, rng);
      Row<double> want(c.size());
      for (int64_t i = 0; i < s.m; ++i) {
        for (int64_t j = 0; j < ldc; ++j) {
          double sum = j >= s.n || add ? c[i * ldc + j] : 0;
          for (int64_t p = 0; j < s.n && p < s.k; ++p)
            sum += 0.5 * double(rounded(ta ? a[p * lda + i] : a[i * lda + p])) *
                   double(rounded(tb ? b[j * ldb + p] : b[p * ldb + j]));
          want[i * ldc + j] = sum;
        }
      }
      kernels::block_gemm(ta, tb, s.m, s.n, s.k, 0.5f, a.data(), lda, b.data(), ldb, add, c.data(), ldc,
                          true);
      CHECK(worst_error(c, want, std::sqrt(double(s.k) + 1)) < tolerance<float>());
      CHECK(c.intact());
    }
  }
}

TEST_CASE("block gemm in bfloat16 keeps infinity and NaN where they belong") {
  if (!kernels::bf16_ready()) return gradus::testing::skipped("this CPU has no AVX512_BF16");
  Row<float> a(30 * 3), b(3 * 20), c(30 * 20);
  std::fill_n(a.data(), a.size(), 1.0f);
  std::fill_n(b.data(), b.size(), 2.0f);
  a[4] = std::bit_cast<float>(0x7f800001u);  // a NaN that rounding as a number would make infinite
  a[8] = INFINITY;
  kernels::block_gemm(false, false, 30, 20, 3, 1, a.data(), 3, b.data(), 20, false, c.data(), 20, true);
  CHECK(c[0] == 6);
  CHECK(std::isnan(c[20]));
  CHECK(c[40] == INFINITY);
  CHECK(c[60] == 6);
}
