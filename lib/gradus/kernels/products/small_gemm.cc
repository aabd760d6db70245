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

// R rows of C times N vectors of columns from j on: R N running sums, which with 4 or more hide much of an
// addition's latency. A's numbers are broadcast, each for N products; B's rows are read as they lie.
template <int R, int N, class T, class Columns>
HWY_INLINE void block(const Product<T>& p, int64_t i, int64_t j, Columns columns) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<Tag<T>> sum[R][N], row[N];
  for (auto& sums : sum)
    for (auto& s : sums) s = hn::Zero(d);
  const T* a = p.a + i * p.row_a;
  const T* b = p.b + j;
  for (int64_t q = 0; q < p.k; ++q, a += p.column_a, b += p.ldb) {
    for (int v = 0; v < N; ++v) row[v] = columns.load(d, b + v * lanes);
    for (int r = 0; r < R; ++r) {
      const auto factor = hn::Set(d, a[r * p.row_a]);
      for (int v = 0; v < N; ++v) sum[r][v] = hn::MulAdd(factor, row[v], sum[r][v]);
    }
  }
  const auto alpha = hn::Set(d, p.alpha);
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < N; ++v) {
      T* c = p.c + (i + r) * p.ldc + j + v * lanes;
      const auto scaled = hn::Mul(alpha, sum[r][v]);
      columns.store(p.add ? hn::Add(scaled, columns.load(d, c)) : scaled, d, c);
    }
  }
}

// Columns j .. of all m rows.
template <int N, class T, class Columns>
HWY_INLINE void strip(const Product<T>& p, int64_t m, int64_t j, Columns columns) {
  int64_t i = 0;
  for (; N == 1 && i + 8 <= m; i += 8) block<8, N>(p, i, j, columns);
  for (; i + 4 <= m; i += 4) block<4, N>(p, i, j, columns);
  if (m - i == 3) block<3, N>(p, i, j, columns);
  if (m - i == 2) block<2, N>(p, i, j, columns);
  if (m - i == 1) block<1, N>(p, i, j, columns);
}

template <class T>
void small_gemm(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t row_a, int64_t column_a,
                const T* b, int64_t ldb, bool add, T* c, int64_t ldc) {
  const Product<T> p{k, alpha, a, row_a, column_a, b, ldb, add, c, ldc};
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<T>()));
  int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) strip<2>(p, m, j, Whole());
  if (j + lanes <= n) {
    strip<1>(p, m, j, Whole());
    j += lanes;
  }
  if (j < n) strip<1>(p, m, j, Part{static_cast<size_t>(n - j)});
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_KERNEL(small_gemm, 12);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
