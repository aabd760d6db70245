#include <gradus/kernels/products/small_gemm.h>
#include <gradus/kernels/simd_targets.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/products/small_gemm.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

template <class T>
struct Product {
  int64_t k;
  T alpha;
  const T* a;
  int64_t row_a, column_a;
  const T* b;
  int64_t ldb;
  bool add;
  T* c;
  int64_t ldc;
};

// R rows of C times one vector of columns from j on: R running sums, which with R >= 4 hide much of an
// addition's latency. A's numbers are broadcast, B's rows are read as they lie.
template <int R, class T, class Columns>
HWY_INLINE void block(const Product<T>& p, int64_t i, int64_t j, Columns columns) {
  const Tag<T> d;
  hn::Vec<Tag<T>> sum[R];
  for (int r = 0; r < R; ++r) sum[r] = hn::Zero(d);
  const T* a = p.a + i * p.row_a;
  const T* b = p.b + j;
  for (int64_t q = 0; q < p.k; ++q, a += p.column_a, b += p.ldb) {
    const auto row = columns.load(d, b);
    for (int r = 0; r < R; ++r) sum[r] = hn::MulAdd(hn::Set(d, a[r * p.row_a]), row, sum[r]);
  }
  const auto alpha = hn::Set(d, p.alpha);
  for (int r = 0; r < R; ++r) {
    T* c = p.c + (i + r) * p.ldc + j;
    const auto scaled = hn::Mul(alpha, sum[r]);
    columns.store(p.add ? hn::Add(scaled, columns.load(d, c)) : scaled, d, c);
  }
}

// The same for two whole vectors of columns: each broadcast is used twice.
template <int R, class T>
HWY_INLINE void wide_block(const Product<T>& p, int64_t i, int64_t j) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<Tag<T>> low[R], high[R];
  for (int r = 0; r < R; ++r) low[r] = high[r] = hn::Zero(d);
  const T* a = p.a + i * p.row_a;
  const T* b = p.b + j;
  for (int64_t q = 0; q < p.k; ++q, a += p.column_a, b += p.ldb) {
    const auto row_low = hn::LoadU(d, b), row_high = hn::LoadU(d, b + lanes);
    for (int r = 0; r < R; ++r) {
      const auto factor = hn::Set(d, a[r * p.row_a]);
      low[r] = hn::MulAdd(factor, row_low, low[r]);
      high[r] = hn::MulAdd(factor, row_high, high[r]);
    }
  }
  const auto alpha = hn::Set(d, p.alpha);
  for (int r = 0; r < R; ++r) {
    T* c = p.c + (i + r) * p.ldc + j;
    const auto x = hn::Mul(alpha, low[r]), y = hn::Mul(alpha, high[r]);
    hn::StoreU(p.add ? hn::Add(x, hn::LoadU(d, c)) : x, d, c);
    hn::StoreU(p.add ? hn::Add(y, hn::LoadU(d, c + lanes)) : y, d, c + lanes);
  }
}

// Columns j .. of all m rows.
template <class T, class Columns>
HWY_INLINE void strip(const Product<T>& p, int64_t m, int64_t j, Columns columns) {
  int64_t i = 0;
  for (; i + 8 <= m; i += 8) block<8>(p, i, j, columns);
  if (i + 4 <= m) {
    block<4>(p, i, j, columns);
    i += 4;
  }
  if (m - i == 3) block<3>(p, i, j, columns);
  if (m - i == 2) block<2>(p, i, j, columns);
  if (m - i == 1) block<1>(p, i, j, columns);
}

template <class T>
HWY_INLINE void wide_strip(const Product<T>& p, int64_t m, int64_t j) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) wide_block<4>(p, i, j);
  if (m - i == 3) wide_block<3>(p, i, j);
  if (m - i == 2) wide_block<2>(p, i, j);
  if (m - i == 1) wide_block<1>(p, i, j);
}

template <class T>
void small_gemm(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t row_a, int64_t column_a,
                const T* b, int64_t ldb, bool add, T* c, int64_t ldc) {
  const Product<T> p{k, alpha, a, row_a, column_a, b, ldb, add, c, ldc};
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<T>()));
  int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) wide_strip(p, m, j);
  if (j + lanes <= n) {
    strip(p, m, j, Whole());
    j += lanes;
  }
  if (j < n) strip(p, m, j, Part{static_cast<size_t>(n - j)});
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_KERNEL(small_gemm, 12);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
