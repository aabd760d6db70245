#include <gradus/kernels/products/amx.h>
#include <gradus/kernels/products/behind_gemm.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/kernels/products/packed_gemm.h>

#include <bit>
#include <thread>

#include "product.h"

using namespace gradus;
using namespace kernel_test;

namespace {

/// False, and the case is skipped, where there is no AMX to test.
bool has_amx() {
  if (kernels::amx_ready()) return true;
  gradus::testing::skipped("this CPU has no AMX, or the process may not use it");
  return false;
}

void check_amx(const Product& p) { check_product(p, kernels::amx_gemm); }

float piece(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

struct Errors {
  /// root of the mean square
  double amx = 0, blas = 0;
};

/// Of products of numbers of the given distribution, against sums in double.
template <class Distribution>
Errors errors(int64_t n, int64_t k, Distribution distribution) {
  std::mt19937 rng(77);
  Row<float> a(n * k), b(k * n), mine(n * n), blas(n * n);
  for (int64_t i = 0; i < n * k; ++i) a[i] = float(distribution(rng)), b[i] = float(distribution(rng));
  kernels::amx_gemm(false, true, n, n, k, 1, a.data(), k, b.data(), k, false, mine.data(), n);
  kernels::blas_gemm(false, true, n, n, k, 1, a.data(), k, b.data(), k, 0, blas.data(), n);
  Errors e;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += double(a[i * k + p]) * double(b[j * k + p]);
      e.amx += std::pow(mine[i * n + j] - sum, 2);
      e.blas += std::pow(blas[i * n + j] - sum, 2);
    }
  }
  return {std::sqrt(e.amx), std::sqrt(e.blas)};
}

}  // namespace

TEST_CASE("amx: three pieces are the number, to the bit") {
  if (!has_amx()) return;
  std::mt19937 rng(78);
  std::uniform_int_distribution<uint32_t> any;
  std::vector<float> x = {0,           1,           -1,        1.0f / 3, 16777215.0f, 3e38f, -3e38f,     0.1f,
                          1.00390625f, 1.99999988f, -0.99609f, 1e-30f,   256.5f,      2.0f,  -1.9999999f};
  while (x.size() < 512 * 8) {
    const float y = std::bit_cast<float>(any(rng));
    // smaller ones lose their last piece to AMX, which takes numbers below 1e-38 for 0
    if (std::fabs(y) > 1e-30f && std::fabs(y) < 3.38e38f) x.push_back(y);
  }
  for (size_t first = 0; first < x.size(); first += 512) {  // 16 rows of 32
    uint16_t packed[3 * kernels::kAmxTile];
    REQUIRE(kernels::amx_pack(true, false, 16, 32, 1, x.data() + first, 32, packed));
    for (int64_t i = 0; i < 16; ++i) {
      for (int64_t k = 0; k < 32; ++k) {
        const uint16_t* h = packed + i * 32 + k % 16 * 2 + k / 16;
        const float high = piece(h[0]), middle = piece(h[kernels::kAmxTile]),
                    low = piece(h[2 * kernels::kAmxTile]);
        const float whole = x[first + size_t(i * 32 + k)];
        CHECK(double(high) + double(middle) + double(low) == double(whole));
        CHECK(std::fabs(middle) <= std::fabs(whole) / 256);
        CHECK(std::fabs(low) <= std::fabs(whole) / 65536);
      }
    }
  }
}

TEST_CASE("amx: any shape, every transpose, writing and adding") {
  if (!has_amx()) return;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const int64_t m : {1, 2, 15, 16, 17, 31, 32, 33, 48, 50, 65})
        check_amx({ta, tb, m, 37, 9, m % 2 == 0});
      for (const int64_t n : {1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 80, 97, 113, 130}) {
        check_amx({ta, tb, 11, n, 21, n % 2 == 0, 0.5f});
        check_amx({ta, tb, 40, n, 50, n % 2 == 1});
      }
      for (const int64_t k : {1, 15, 16, 17, 31, 32, 33, 47, 64, 130})
        check_amx({ta, tb, 20, 20, k, k % 2 == 0, -2});
      // more than one block of k, of the side that is held, of the other
      check_amx({ta, tb, 13, 50, 1100});
      check_amx({ta, tb, 520, 530, 520, true});
      check_amx({ta, tb, 1000, 40, 70, true});
      check_amx({ta, tb, 9, 1800, 133, false, 1.5f});
    }
  }
}

TEST_CASE(
    "amx: errors are no larger than those of a product in float, twice them where one product is the sum") {
  if (!has_amx()) return;
  for (const int64_t k : {32, 200, 1024}) {
    CAPTURE(k);
    const Errors normal = errors(48, k, std::normal_distribution<double>());
    CHECK(normal.amx <= normal.blas);
    const Errors positive = errors(48, k, std::uniform_real_distribution<double>(0, 1));
    CHECK(positive.amx <= positive.blas);
    const Errors wide = errors(48, k, std::lognormal_distribution<double>(0, 4));
    CHECK(wide.amx <= 2.5 * wide.blas);
  }
}

TEST_CASE("amx: what is not finite is as in any other product") {
  if (!has_amx()) return;
  std::mt19937 rng(79);
  const int64_t m = 40, n = 200, k = 600;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float odd :
       {inf, -inf, nan, std::bit_cast<float>(0x7fffffffu), std::bit_cast<float>(0x7f800001u)}) {
    Row<float> a = Row<float>::random(m * k, rng), b = Row<float>::random(k * n, rng), c(m * n, 1);
    for (int64_t i = 0; i < a.size(); ++i) a[i] = std::fabs(a[i]);
    for (int64_t i = 0; i < b.size(); ++i) b[i] = std::fabs(b[i]) + 0.5f;
    a[3 * k + 5] = odd;
    kernels::amx_gemm(false, false, m, n, k, 1, a.data(), k, b.data(), n, true, c.data(), n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; j += 7) {
        if (i != 3) {
          CHECK(std::isfinite(c[i * n + j]));
        } else if (std::isnan(odd)) {
          CHECK(std::isnan(c[i * n + j]));
        } else {
          CHECK(c[i * n + j] == odd);
        }
      }
    }
  }
  // and one in a recurrent weight
  Row<float> w = Row<float>::random(64 * 64, rng), x(32 * 64, 1), y(32 * 64);
  for (int64_t i = 0; i < w.size(); ++i) w[i] = std::fabs(w[i]);
  w[64 * 9 + 2] = inf;
  const kernels::PackedMatrix<float> packed(kernels::PackedMatrix<float>::Use::transposed, 64, 64, w.data(),
                                            64);
  packed.product(32, x.data(), 64, false, y.data(), 64);
  CHECK(y[9] == inf);
  CHECK(std::isfinite(y[8]));
}

TEST_CASE("amx: a product with an infinity or NaN in A is as any other, and other rows keep their bits") {
  if (!has_amx()) return;
  std::mt19937 rng(82);
  const int64_t m = 40, n = 48, k = 600;
  const float inf = std::numeric_limits<float>::infinity();
  Row<float> w = Row<float>::random(n * k, rng), a = Row<float>::random(m * k, rng), before(m * n),
             after(m * n);
  for (int64_t i = 0; i < w.size(); ++i) w[i] = std::fabs(w[i]) + 0.5f;
  const kernels::PackedMatrix<float> packed(kernels::PackedMatrix<float>::Use::transposed, n, k, w.data(), k);
  packed.product(m, a.data(), k, false, before.data(), n);
  a[3 * k + 5] = inf;
  a[4 * k + 599] = -inf;
  a[9 * k + 20] = std::numeric_limits<float>::quiet_NaN();
  packed.product(m, a.data(), k, false, after.data(), n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      if (i == 3) CHECK(after[i * n + j] == inf);
      else if (i == 4) CHECK(after[i * n + j] == -inf);
      else if (i == 9) CHECK(std::isnan(after[i * n + j]));
      else CHECK(after[i * n + j] == before[i * n + j]);
    }
  }
}

TEST_CASE("amx: finite numbers whose product is none give what is not finite") {
  if (!has_amx()) return;
  // 3e38 squared is infinity; its pieces' products are infinities of either sign, and their sum may be NaN.
  Row<float> a(32 * 64, 3e38f), b(64 * 32, 3e38f), c(32 * 32);
  kernels::amx_gemm(false, false, 32, 32, 64, 1, a.data(), 64, b.data(), 32, false, c.data(), 32);
  for (int64_t i = 0; i < c.size(); ++i) CHECK_FALSE(std::isfinite(c[i]));
}

TEST_CASE("amx: a row that pieces cannot stand for, from the packed weight in plain floats") {
  // Packing takes AVX-512 alone.
  std::mt19937 rng(83);
  const float inf = std::numeric_limits<float>::infinity();
#if defined(__x86_64__)
  const bool packs = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  const bool packs = false;
#endif
  if (!packs) return gradus::testing::skipped("this CPU has no AVX-512");
  for (const bool transposed : {false, true}) {
    for (const int64_t n : {1, 15, 16, 17, 40}) {
      for (const int64_t k : {1, 15, 16, 17, 31, 32, 33, 70}) {
        CAPTURE(transposed);
        CAPTURE(n);
        CAPTURE(k);
        const int64_t ld = (transposed ? k : n) + 1;
        Row<float> w = Row<float>::random((transposed ? n : k) * ld, rng), a = Row<float>::random(k, rng),
                   c(n, 5);
        const auto at = [&](int64_t p, int64_t j) { return w[transposed ? j * ld + p : p * ld + j]; };
        std::vector<uint16_t> packed(size_t(kernels::amx_panels(n) * kernels::amx_panel(k)));
        REQUIRE(kernels::amx_pack(false, transposed, n, k, 1, w.data(), ld, packed.data()));
        const kernels::AmxPanels panels{packed.data(), kernels::amx_panel(k)};
        // One number of A at a time gives W back, to the bit.
        for (int64_t p = 0; p < k; ++p) {
          Row<float> one(k), column(n, 5);
          one[p] = 1;
          kernels::amx_multiply_plainly(n, k, one.data(), panels, false, column.data());
          for (int64_t j = 0; j < n; ++j) CHECK(column[j] == at(p, j));
          CHECK(column.intact());
        }
        kernels::amx_multiply_plainly(n, k, a.data(), panels, true, c.data());
        Row<double> want(n, 5);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t p = 0; p < k; ++p) want[j] += double(a[p]) * double(at(p, j));
        CHECK(worst_error(c, want, std::sqrt(double(k) + 1)) < tolerance<float>());
        a[k - 1] = inf;
        kernels::amx_multiply_plainly(n, k, a.data(), panels, false, c.data());
        for (int64_t j = 0; j < n; ++j) CHECK(c[j] == (at(k - 1, j) > 0 ? inf : -inf));
      }
    }
  }
}

TEST_CASE("amx: a row's result does not depend on where it stands; every thread gets the same bits") {
  if (!has_amx()) return;
  std::mt19937 rng(80);
  const int64_t m = 70, n = 90, k = 300;
  const Row<float> a = Row<float>::random(m * k, rng), b = Row<float>::random(n * k, rng);
  Row<float> all(m * n), parts(m * n);
  const auto run = [&](int64_t first, int64_t end, Row<float>& c) {
    kernels::amx_gemm(false, true, end - first, n, k, 1, a.data() + first * k, k, b.data(), k, false,
                      c.data() + first * n, n);
  };
  std::thread other([&] { run(0, m, all); });
  run(0, 11, parts);
  run(11, 45, parts);
  run(45, m, parts);
  other.join();
  CHECK(parts.same_bits(all));
}

TEST_CASE("amx: gemm takes it where it is there and the product large enough") {
  std::mt19937 rng(81);
  const int64_t m = 240, n = 200, k = 128;
  const Row<float> a = Row<float>::random(m * k, rng), b = Row<float>::random(n * k, rng);
  const auto product = [&] {
    Row<float> c(m * n);
    kernels::gemm(false, true, m, n, k, 1.0f, a.data(), k, b.data(), k, 0.0f, c.data(), n);
    return c;
  };
  CHECK(kernels::use_amx_gemm(m, n, k) == kernels::amx_ready());
  CHECK(!kernels::use_amx_gemm(2, 3, 4));
  if (!has_amx()) return;
  Row<float> amx(m * n), other(m * n);
  kernels::amx_gemm(false, true, m, n, k, 1, a.data(), k, b.data(), k, false, amx.data(), n);
  CHECK(product().same_bits(amx));
  kernels::amx_allow(false);
  CHECK(!kernels::use_amx_gemm(m, n, k));
  other = product();
  kernels::amx_allow(true);
  CHECK(!other.same_bits(amx));
  CHECK(worst_error(other, amx, std::sqrt(double(k))) < tolerance<float>());
}
