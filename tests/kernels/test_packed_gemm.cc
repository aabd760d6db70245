#include <gradus/kernels/products/packed_gemm.h>

#include <numeric>
#include <thread>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

namespace {

template <class T>
void check_packed(bool transposed, int64_t m, int64_t n, int64_t k, bool add) {
  CAPTURE(transposed);
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(add);
  using Use = typename kernels::PackedMatrix<T>::Use;
  std::mt19937 rng(71);
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const int64_t lda = k + 1, ldw = (transposed ? k : n) + 2, ldc = n + 3;
  Row<T> a = Row<T>::random(m * lda, rng), w = Row<T>::random((transposed ? n : k) * ldw, rng);
  for (int64_t i = 0; i < a.size(); ++i) a[i] = i % lda < k ? a[i] : nan;
  for (int64_t i = 0; i < w.size(); ++i) w[i] = i % ldw < (transposed ? k : n) ? w[i] : nan;
  Row<T> c = Row<T>::random(m * ldc, rng);
  Row<double> want(m * ldc);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < ldc; ++j) {
      double sum = j >= n || add ? double(c[i * ldc + j]) : 0;
      for (int64_t p = 0; j < n && p < k; ++p) {
        sum += double(a[i * lda + p]) * double(transposed ? w[j * ldw + p] : w[p * ldw + j]);
      }
      want[i * ldc + j] = sum;
      if (j < n && !add) c[i * ldc + j] = nan;  // must not be read
    }
  }
  const kernels::PackedMatrix<T> packed(transposed ? Use::transposed : Use::plain, n, k, w.data(), ldw);
  CHECK(packed.n() == n);
  CHECK(packed.k() == k);
  packed.product(m, a.data(), lda, add, c.data(), ldc);
  CHECK(worst_error(c, want, std::sqrt(double(k) + 1)) < tolerance<T>());
  CHECK(c.intact());
}

}  // namespace

TEST_CASE_TEMPLATE("packed product: any shape, both uses, writing and adding", T, float, double) {
  on_every_target([] {
    for (const bool transposed : {false, true}) {
      for (const int64_t n : {1, 2, 3, 15, 16, 17, 31, 33, 48, 50, 100}) {
        for (const int64_t m : {0, 1, 2, 3, 5, 8, 9, 17}) check_packed<T>(transposed, m, n, 7, m % 2 == 0);
        for (const int64_t k : {0, 1, 16, 19}) check_packed<T>(transposed, 6, n, k, k % 2 == 0);
      }
      for (int64_t m = 1; m <= 20; ++m) check_packed<T>(transposed, m, 53, 33, m % 2 == 0);
      check_packed<T>(transposed, 50, 96, 600, false);  // deeper than one block of k
      check_packed<T>(transposed, 13, 70, 300, true);
      check_packed<T>(transposed, 530, 20, 40, true);  // more rows than one block of them
    }
  });
}

TEST_CASE("packed product: threads share one; a row's result does not depend on its neighbours") {
  std::mt19937 rng(72);
  const int64_t m = 24, n = 70, k = 90;
  const Row<float> a = Row<float>::random(m * k, rng), w = Row<float>::random(n * k, rng);
  const kernels::PackedMatrix<float> packed(kernels::PackedMatrix<float>::Use::transposed, n, k, w.data(), k);
  Row<float> all(m * n), halves(m * n);
  packed.product(m, a.data(), k, false, all.data(), n);
  std::thread other([&] { packed.product(m - 11, a.data() + 11 * k, k, false, halves.data() + 11 * n, n); });
  packed.product(11, a.data(), k, false, halves.data(), n);
  other.join();
  CHECK(halves.same_bits(all));
}

TEST_CASE_TEMPLATE("packed product: some columns have the bits of all", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(73);
    for (const int64_t n : {1, 16, 48, 49, 64, 65, 100, 112, 310, 320}) {
      const int64_t m = 5, k = 41;
      const Row<T> a = Row<T>::random(m * k, rng), w = Row<T>::random(n * k, rng);
      const kernels::PackedMatrix<T> packed(kernels::PackedMatrix<T>::Use::transposed, n, k, w.data(), k);
      CHECK(packed.column_at(0) == 0);
      CHECK(packed.column_at(n) == n);
      Row<T> all(m * n);
      packed.product(m, a.data(), k, false, all.data(), n);
      for (int64_t wanted = 0; wanted <= n; wanted += 7) {
        const int64_t middle = packed.column_at(wanted);
        REQUIRE(middle <= wanted);
        Row<T> parts(m * n, T(3));
        packed.product_columns(0, middle, m, a.data(), k, false, parts.data(), n);
        for (int64_t i = middle; i < n; ++i) CHECK(parts[i] == T(3));
        packed.product_columns(middle, n, m, a.data(), k, false, parts.data(), n);
        CHECK(parts.intact());
        if (sizeof(T) == 4) {
          CHECK(parts.same_bits(all));
        } else {
          CHECK(worst_error(parts, all) < 1e-13);
        }
      }
    }
  });
}

TEST_CASE("packed product: single elements have the bits of all") {
  on_every_target([] {
    std::mt19937 rng(74);
    for (const int64_t k : {0, 1, 41, 256, 300, 520})
      for (const int64_t n : {1, 15, 16, 17, 48, 49, 64, 65, 80, 100, 112, 310, 320}) {
        CAPTURE(k);
        CAPTURE(n);
        const Row<float> a = Row<float>::random(k, rng), w = Row<float>::random(n * k, rng);
        // For few rows, which is what single elements are wanted of: the layout for AMX has none.
        using Packed = kernels::PackedMatrix<float>;
        const Packed packed(Packed::Use::transposed, n, k, w.data(), k, {.rows = 8, .products = 100});
        REQUIRE(packed.has_elements());
        Row<float> all(n), each(n), some(3, 7.0f);
        packed.product(1, a.data(), k, false, all.data(), n);
        std::vector<int32_t> columns(static_cast<size_t>(n));
        std::iota(columns.begin(), columns.end(), 0);
        packed.elements(a.data(), n, columns.data(), each.data());
        CHECK(each.same_bits(all));
        const std::vector<int32_t> two = {static_cast<int32_t>(n - 1), static_cast<int32_t>(n / 2)};
        packed.elements(a.data(), 2, two.data(), some.data());
        CHECK(some[0] == all[n - 1]);
        CHECK(some[1] == all[n / 2]);
        CHECK(some[2] == 7.0f);
      }
  });
  const kernels::PackedMatrix<double> plain(kernels::PackedMatrix<double>::Use::transposed, 0, 0, nullptr, 0);
  CHECK(!plain.has_elements());
}
