#include <gradus/kernels/products/int8.h>

#include <cmath>

#include "../check.h"
#include "util.h"

using namespace gradus;
using namespace kernel_test;
using gradus::testing::error_of;

namespace {

struct InEight {
  int64_t m, n, k;
  bool add;
};

// What the header says, in plain loops: w and x rounded row by row, sums of integers.
std::vector<double> expected(const InEight& s, const Row<float>& a, int64_t lda, const Row<float>& w,
                             int64_t ldw, const Row<float>& c, int64_t ldc) {
  std::vector<double> out;
  for (int64_t i = 0; i < s.m; ++i) {
    double most = 0;
    for (int64_t p = 0; p < s.k; ++p) most = worse(most, std::abs(static_cast<double>(a[i * lda + p])));
    for (int64_t j = 0; j < s.n; ++j) {
      std::vector<float> row(w.data() + j * ldw, w.data() + j * ldw + s.k);
      std::vector<int8_t> q(static_cast<size_t>(s.k));
      const double scale = kernels::round_to_int8(s.k, row.data(), q.data());
      int64_t sum = 0;
      for (int64_t p = 0; p < s.k; ++p)
        sum += q[static_cast<size_t>(p)] *
               (most > 0 ? std::lrint(a[i * lda + p] * (127.0f / static_cast<float>(most))) : 0);
      out.push_back(static_cast<double>(sum) * scale * most / 127 + (s.add ? c[i * ldc + j] : 0));
    }
  }
  return out;
}

kernels::Int8Rows rounded(const kernels::Int8Matrix& w, int64_t m, const float* x, int64_t ldx) {
  kernels::Int8Rows rows;
  w.round(m, x, ldx, rows);
  return rows;
}

// The result, every column of it, in one product or in parts.
std::vector<float> in_eight(const kernels::Int8Matrix& w, const InEight& s, const Row<float>& a, int64_t lda,
                            Row<float> c, int64_t ldc, int64_t parts) {
  const kernels::Int8Rows rows = rounded(w, s.m, a.data(), lda);
  for (int64_t part = 0; part < parts; ++part)
    w.product_columns(w.column_at(s.n * part / parts), w.column_at(s.n * (part + 1) / parts), rows, s.add,
                      c.data(), ldc);
  CHECK(c.intact());
  std::vector<float> out;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < ldc; ++j) out.push_back(c[i * ldc + j]);
  return out;
}

}  // namespace

TEST_CASE("a product in 8 bits: any shape, the same bits on every target and in parts") {
  for (const InEight& s :
       {InEight{1, 1, 1, false}, InEight{3, 17, 5, true}, InEight{4, 16, 4, false}, InEight{5, 63, 33, true},
        InEight{9, 65, 128, false}, InEight{2, 130, 260, true}, InEight{1, 48, 1000, false}}) {
    CAPTURE(s.m);
    CAPTURE(s.n);
    CAPTURE(s.k);
    std::mt19937 rng(7);
    const int64_t lda = s.k + 2, ldw = s.k + 1, ldc = s.n + 3;
    const Row<float> a = Row<float>::random(s.m * lda, rng), w = Row<float>::random(s.n * ldw, rng);
    const Row<float> c = Row<float>::random(s.m * ldc, rng);
    const kernels::Int8Matrix packed(s.n, s.k, w.data(), ldw);
    CHECK(packed.n() == s.n);
    const std::vector<double> want = expected(s, a, lda, w, ldw, c, ldc);
    const std::vector<float> first = in_eight(packed, s, a, lda, c, ldc, 1);
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < ldc; ++j) {
        const float got = first[static_cast<size_t>(i * ldc + j)];
        if (j < s.n)
          CHECK(std::abs(got - want[static_cast<size_t>(i * s.n + j)]) < 1e-4);
        else
          CHECK(got == c[i * ldc + j]);  // beyond the columns nothing is written
      }
    on_every_target([&] {
      const kernels::Int8Matrix own(s.n, s.k, w.data(), ldw);  // it chooses its instructions
      const std::vector<float> here = in_eight(own, s, a, lda, c, ldc, 1);
      for (size_t i = 0; i < here.size(); ++i) CHECK(std::abs(here[i] - first[i]) < 1e-5);  // an fma or none
      CHECK(in_eight(own, s, a, lda, c, ldc, 3) == here);
      // A row's neighbours do not matter.
      const Row<float> one = [&] {
        Row<float> out(lda);
        for (int64_t p = 0; p < lda; ++p) out[p] = a[(s.m - 1) * lda + p];
        return out;
      }();
      Row<float> last(ldc);
      for (int64_t j = 0; j < ldc; ++j) last[j] = c[(s.m - 1) * ldc + j];
      const std::vector<float> alone = in_eight(own, {1, s.n, s.k, s.add}, one, lda, last, ldc, 1);
      CHECK(std::equal(alone.begin(), alone.end(), here.end() - ldc));
    });
  }
}

TEST_CASE("a product in 8 bits is near the product") {
  std::mt19937 rng(3);
  const int64_t n = 64, k = 256;
  const Row<float> x = Row<float>::random(k, rng), w = Row<float>::random(n * k, rng);
  Row<float> y(n);
  const kernels::Int8Matrix matrix(n, k, w.data(), k);
  matrix.product_columns(0, n, rounded(matrix, 1, x.data(), k), false, y.data(), n);
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0, size = 0;
    for (int64_t p = 0; p < k; ++p) {
      sum += static_cast<double>(x[p]) * w[j * k + p];
      size += static_cast<double>(x[p]) * x[p];
    }
    CHECK(std::abs(y[j] - sum) < 0.03 * std::sqrt(size));
  }
}

TEST_CASE("rounding twice changes nothing, and the largest weight is kept") {
  std::mt19937 rng(5);
  for (const float factor : {1e-30f, 1e-3f, 1.0f, 1e20f}) {
    Row<float> row = Row<float>::random(100, rng);
    for (int64_t i = 0; i < 100; ++i) row[i] *= factor;
    std::vector<float> once(row.data(), row.data() + 100);
    std::vector<int8_t> q(100), again(100);
    const float scale = kernels::round_to_int8(100, once.data(), q.data());
    for (size_t i = 0; i < 100; ++i)
      CHECK(std::abs(once[i] - row[static_cast<int64_t>(i)]) <= 0.5001f * scale);
    CHECK(std::abs(*std::max_element(q.begin(), q.end(),
                                     [](int a, int b) { return std::abs(a) < std::abs(b); })) == 127);
    std::vector<float> twice = once;
    CHECK(kernels::round_to_int8(100, twice.data(), again.data()) == scale);
    CHECK(twice == once);
    CHECK(again == q);
  }
  std::vector<float> zeros(8);
  CHECK(kernels::round_to_int8(8, zeros.data()) == 0);
  CHECK(zeros == std::vector<float>(8));
}

TEST_CASE("what is not finite: weights are refused, a row of x makes its own row NaN") {
  std::vector<float> w = {1, INFINITY};
  CHECK(error_of([&] {
          kernels::Int8Matrix(1, 2, w.data(), 2);
        }).find("[Int8Matrix] weights must be finite") == 0);
  w[1] = 2;
  const kernels::Int8Matrix packed(1, 2, w.data(), 2);
  on_every_target([&] {
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      const std::vector<float> x = {1, 1, bad, 1, 0, 0};
      std::vector<float> y(3);
      packed.product_columns(0, 1, rounded(packed, 3, x.data(), 2), false, y.data(), 1);
      CHECK(std::abs(y[0] - 3) < 0.05);
      CHECK(std::isnan(y[1]));
      CHECK(y[2] == 0);
    }
  });
}
