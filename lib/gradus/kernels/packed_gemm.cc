#include <gradus/kernels/gemm.h>
#include <gradus/kernels/packed_gemm.h>
#include <gradus/kernels/simd_targets.h>
#include <gradus/memory.h>

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/packed_gemm.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

// The layout: panels of three vectors' width, within a panel row after row of the k rows; the columns behind
// the end are 0 up to a whole vector. A tile is up to kTileRows rows of A times one panel: its sums stay in
// registers (24 of AVX-512's 32, 12 of AVX2's 16) while k runs, each number of A is broadcast once for three
// products, and each vector of W is read once for all rows. With few rows (a batch) this beats packing in
// each call by far; for more than a few hundred gemm is the better choice.

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 4;
#endif
constexpr int kPanelVectors = 3;
/// As much of k as one tile goes through: with AVX-512 this much of a panel is 48 KB.
constexpr int64_t kDepth = 256;
/// As many rows of A as meet a panel before the next one: they should stay in the second-level cache.
constexpr int64_t kBlockRows = 256;

/// c (+)= a panel, R rows by N vectors, `depth` deep. Of the last vector `last` numbers are stored.
template <int R, int N>
HWY_NOINLINE void tile(int64_t depth, const float* a, int64_t lda, const float* panel, bool add, float* c,
                       int64_t ldc, size_t last) {
  const Tag<float> d;
  using V = hn::Vec<Tag<float>>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[R][N];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < N; ++v) sum[r][v] = hn::Zero(d);
  }
  for (int64_t p = 0; p < depth; ++p, panel += N * lanes) {
    V w[N];
    for (int v = 0; v < N; ++v) w[v] = hn::Load(d, panel + v * lanes);
    for (int r = 0; r < R; ++r) {
      const V x = hn::Set(d, a[r * lda + p]);
      for (int v = 0; v < N; ++v) sum[r][v] = hn::MulAdd(x, w[v], sum[r][v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < N; ++v) {
      float* out = c + r * ldc + v * lanes;
      if (v + 1 < N || last == static_cast<size_t>(lanes)) {
        hn::StoreU(add ? hn::Add(sum[r][v], hn::LoadU(d, out)) : sum[r][v], d, out);
      } else {
        const Part part{last};
        part.store(add ? hn::Add(sum[r][v], part.load(d, out)) : sum[r][v], d, out);
      }
    }
  }
}

using Tile = void (*)(int64_t, const float*, int64_t, const float*, bool, float*, int64_t, size_t);

template <int N>
HWY_INLINE Tile tile_of(int rows) {
  if constexpr (kTileRows == 8) {
    constexpr Tile tiles[] = {tile<1, N>, tile<2, N>, tile<3, N>, tile<4, N>,
                              tile<5, N>, tile<6, N>, tile<7, N>, tile<8, N>};
    return tiles[rows - 1];
  } else {
    constexpr Tile tiles[] = {tile<1, N>, tile<2, N>, tile<3, N>, tile<4, N>};
    return tiles[rows - 1];
  }
}

/// tile<rows, vectors>
HWY_INLINE Tile tile_of(int rows, int64_t vectors) {
  return vectors == 3 ? tile_of<3>(rows) : vectors == 2 ? tile_of<2>(rows) : tile_of<1>(rows);
}

void packed_product(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed,
                    bool add, float* c, int64_t ldc) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<float>()));
  for (int64_t first = 0; first < m; first += kBlockRows, a += kBlockRows * lda, c += kBlockRows * ldc) {
    const int64_t block = std::min(kBlockRows, m - first);
    const int64_t tiles = (block + kTileRows - 1) / kTileRows;
    const float* panel = packed;
    for (int64_t j = 0; j < n;) {
      const int64_t width = std::min(n - j, kPanelVectors * lanes);
      const int64_t vectors = (width + lanes - 1) / lanes;
      const size_t last = static_cast<size_t>(width - (vectors - 1) * lanes);
      for (int64_t p = 0; p < k; p += kDepth) {
        const int64_t depth = std::min(kDepth, k - p);
        for (int64_t t = 0, i = 0; t < tiles; ++t) {
          // Rows are spread evenly: 50 rows are 8 7 7 7 7 7 7, not six times 8 and a tile of 2.
          const int rows = static_cast<int>((block - i + tiles - t - 1) / (tiles - t));
          const Tile run = tile_of(rows, vectors);
          run(depth, a + i * lda + p, lda, panel + p * vectors * lanes, add || p > 0, c + i * ldc + j, ldc,
              last);
          i += rows;
        }
      }
      panel += k * vectors * lanes;
      j += width;
    }
  }
}

/// The length of the packed form of [k, n].
int64_t packed_length(int64_t n, int64_t k) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<float>()));
  return (n + lanes - 1) / lanes * lanes * k;
}

void pack(bool transposed, int64_t n, int64_t k, const float* w, int64_t ldw, float* packed) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag<float>()));
  for (int64_t j = 0; j < n;) {
    const int64_t width = std::min(n - j, kPanelVectors * lanes);
    const int64_t stride = (width + lanes - 1) / lanes * lanes;
    if (transposed) {
      for (int64_t p0 = 0; p0 < k; p0 += 16) {  // a cache line of each row of w at a time
        const int64_t end = std::min(p0 + 16, k);
        for (int64_t i = 0; i < width; ++i) {
          const float* row = w + (j + i) * ldw;
          for (int64_t p = p0; p < end; ++p) packed[p * stride + i] = row[p];
        }
      }
    } else {
      for (int64_t p = 0; p < k; ++p) std::copy_n(w + p * ldw + j, width, packed + p * stride);
    }
    for (int64_t p = 0; width < stride && p < k; ++p) {
      std::fill(packed + p * stride + width, packed + (p + 1) * stride, 0.0f);
    }
    packed += k * stride;
    j += width;
  }
}

using Product = decltype(&packed_product);
Product product_here() { return &packed_product; }

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

HWY_EXPORT(packed_length);
HWY_EXPORT(pack);
HWY_EXPORT(product_here);

template <class T>
PackedMatrix<T>::PackedMatrix(Use use, int64_t n, int64_t k, const T* w, int64_t ldw, const Plan& plan)
    : use_(use), n_(n), k_(k), w_(w), ldw_(ldw) {
  if constexpr (std::is_same_v<T, float>) {
    if (plan.products < 3 || plan.rows < 2 || plan.rows > 256) return;
    const size_t bytes = static_cast<size_t>(HWY_DYNAMIC_DISPATCH(packed_length)(n, k)) * sizeof(float);
    packed_ = allocate(static_cast<int64_t>(bytes));
    HWY_DYNAMIC_DISPATCH(pack)(use == Use::transposed, n, k, w, ldw, static_cast<float*>(packed_.get()));
    product_ = HWY_DYNAMIC_DISPATCH(product_here)();
  }
}

template <class T>
void PackedMatrix<T>::product(int64_t m, const T* a, int64_t lda, bool add, T* c, int64_t ldc) const {
  if (!product_) {
    gemm(false, use_ == Use::transposed, m, n_, k_, T(1), a, lda, w_, ldw_, T(add), c, ldc);
  } else if (k_ > 0) {
    product_(m, n_, k_, a, lda, static_cast<const T*>(packed_.get()), add, c, ldc);
  } else if (!add) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n_, T(0));
  }
}

template class PackedMatrix<float>;
template class PackedMatrix<double>;

}  // namespace gradus::kernels
#endif  // HWY_ONCE
