#include <gradus/kernels/block_gemm.h>
#include <gradus/kernels/simd_targets.h>
#include <gradus/memory.h>

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/block_gemm.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/packed_tile-inl.h>

// for blocks of k, for blocks of n: op(B)'s block is packed in panels, at most 768 KB, which stay in the
//   second-level cache while all of op(A) meets them:
//     for tiles: those rows of A stay in the first-level cache while
//       for panels: the sums of a tile grow in registers.
// A is read where it stands, unless its columns or rows would fall on few lines of the cache: transposed, or
// with rows a multiple of 4 KB apart, some tiles' worth of it are packed at a time.

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t kDepth = 256;         // of k
constexpr int64_t kBlockRows = 256;      // of op(A), packed at a time
constexpr int64_t kBlockColumns = 768;  // of op(B), a multiple of a panel's for every vector length

/// The next of the even parts of n of at most `most`, each but the last a multiple of `unit`.
int64_t next_part(int64_t n, int64_t most, int64_t unit) {
  const int64_t parts = (n + most - 1) / most, size = (n + parts - 1) / parts;
  return std::min(n, (size + unit - 1) / unit * unit);
}

int64_t packed_rows(int64_t n) {
  const int64_t lanes = float_lanes();
  return (n + lanes - 1) / lanes * lanes;
}

/// op(A)[rows, depth]: tile after tile, each [depth][its rows].
void pack_tiles(bool transposed, int64_t rows, int64_t depth, const float* a, int64_t lda, float* packed) {
  if (!transposed) {
    for (int64_t i = 0; i < rows;) {
      const int height = next_tile(rows - i);
      transpose_into(height, depth, a + i * lda, lda, packed, height);
      packed += height * depth;
      i += height;
    }
    return;
  }
  const hn::CappedTag<float, kTileRows> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kDeep = 16;  // rows of A whose lines serve all tiles before they are left
  for (int64_t first = 0; first < depth; first += kDeep) {
    const int64_t end = std::min(first + kDeep, depth);
    float* out = packed;
    for (int64_t i = 0; i < rows;) {
      const int height = next_tile(rows - i);
      if (height == kTileRows) {
        for (int64_t p = first; p < end; ++p) {
          for (int64_t l = 0; l < kTileRows; l += lanes) {
            hwy::Prefetch(a + (p + kDeep) * lda + i + l);
            hn::StoreU(hn::LoadU(d, a + p * lda + i + l), d, out + p * kTileRows + l);
          }
        }
      } else {
        for (int64_t p = first; p < end; ++p) std::copy_n(a + p * lda + i, height, out + p * height);
      }
      out += height * depth;
      i += height;
    }
  }
}

template <bool kPackedA>
void multiply(int64_t m, int64_t n, int64_t depth, float alpha, const float* a, int64_t lda,
              const float* panels, bool add, float* c, int64_t ldc) {
  for (int64_t i = 0; i < m;) {
    const int rows = next_tile(m - i);
    const float* from = panels;
    for (int64_t j = 0; j < n;) {
      const Panel panel(n - j);
      tile_of<kPackedA>(rows, panel.vectors)(depth, alpha, a, lda, from, add, c + j, ldc, panel.last, from,
                                             0);
      from += depth * panel.stride;
      j += panel.columns;
    }
    a += kPackedA ? rows * depth : rows * lda;
    c += rows * ldc;
    i += rows;
  }
}

void blocked(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
             int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc) {
  const int64_t unit = kPanelVectors * float_lanes(), size = static_cast<int64_t>(sizeof(float));
  const bool pack_a = trans_a || (lda % 1024 == 0 && m > kTileRows);
  const int64_t depth_most = next_part(k, kDepth, 1), columns_most = next_part(n, kBlockColumns, unit);
  const std::shared_ptr<void> panels_memory = allocate(packed_rows(columns_most) * depth_most * size);
  const std::shared_ptr<void> tiles_memory =
      pack_a ? allocate(std::min(m, kBlockRows) * depth_most * size) : std::shared_ptr<void>();
  float* panels = static_cast<float*>(panels_memory.get());
  float* tiles = static_cast<float*>(tiles_memory.get());
  for (int64_t p = 0, depth; p < k; p += depth) {
    depth = next_part(k - p, kDepth, 1);
    for (int64_t j = 0, columns; j < n; j += columns) {
      columns = next_part(n - j, kBlockColumns, unit);
      float* to = panels;
      for (int64_t q = 0; q < columns;) {
        const Panel panel(columns - q);
        pack_panel(trans_b, panel, depth, trans_b ? b + (j + q) * ldb + p : b + p * ldb + j + q, ldb, to);
        to += depth * panel.stride;
        q += panel.columns;
      }
      if (!pack_a) {
        multiply<false>(m, columns, depth, alpha, a + p, lda, panels, add || p > 0, c + j, ldc);
        continue;
      }
      for (int64_t i = 0; i < m; i += kBlockRows) {
        const int64_t rows = std::min(kBlockRows, m - i);
        pack_tiles(trans_a, rows, depth, trans_a ? a + p * lda + i : a + i * lda + p, lda, tiles);
        multiply<true>(rows, columns, depth, alpha, tiles, 0, panels, add || p > 0, c + i * ldc + j, ldc);
      }
    }
  }
}

bool wide_vectors() { return HWY_TARGET == HWY_AVX3; }

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

HWY_EXPORT(blocked);
HWY_EXPORT(wide_vectors);

void block_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc) {
  if (k <= 0 && !add) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, 0.0f);
  }
  if (m <= 0 || n <= 0 || k <= 0) return;
  HWY_DYNAMIC_DISPATCH(blocked)(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, add, c, ldc);
}

bool use_block_gemm(int64_t m, int64_t n, int64_t k) {
  return m >= 24 && n >= 32 && k >= 16 && m * n * k >= (int64_t{1} << 20) &&
         HWY_DYNAMIC_DISPATCH(wide_vectors)();
}

}  // namespace gradus::kernels
#endif  // HWY_ONCE
