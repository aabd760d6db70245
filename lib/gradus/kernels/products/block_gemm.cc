#include <gradus/kernels/products/behind_gemm.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/kernels/simd_targets.h>
#include <gradus/memory.h>

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/products/block_gemm.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/products/packed_tile-inl.h>

// Compiled only for AVX-512, where it beats the BLAS (see use_block_gemm), as the tiles take long to compile.
//
// for blocks of k, for blocks of n: pack op(B)'s block in panels, at most 768 KB, for the second-level cache
//   for tiles of rows of op(A), which stay in the first-level cache:
//     for panels: add up the sums of a tile in registers
// A is read in place, unless its columns or rows would compete for few lines of the cache: if A is transposed,
// or its rows are a multiple of 4 KB apart, up to 256 rows of op(A) are packed at a time. While they compute,
// the tiles prefetch, line by line, what is needed next: the following rows of C, or B's next block.

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3

constexpr int64_t kBlockRows = 256;  // of op(A), packed at a time
constexpr int64_t kFewRows = 640;    // of op(A): with no more than these, packing B waits for memory
constexpr int64_t kFromMemory = int64_t{4} << 20;  // numbers: more than stay in the last cache
constexpr int64_t kTileDepth = 256;                // a longer sum in one register loses digits

/// A block of op(B): 768 KB of panels.
struct BlockShape {
  int64_t depth, columns;  // columns: a multiple of a panel's for every vector length
};
constexpr BlockShape kBlockShapes[] = {{256, 768}, {384, 528}, {512, 384}};

/// The shape with which fewest numbers of A and C go by, where they come from memory: C is written for each
/// block of k, and read for each but the first; A is read for each block of n. In the cache the first is best.
BlockShape block_shape(int64_t m, int64_t n, int64_t k) {
  BlockShape best = kBlockShapes[0];
  int64_t least = 0;
  if (std::max({m * n, m * k, n * k}) < kFromMemory) return best;
  for (const BlockShape& s : kBlockShapes) {
    const int64_t deep = (k + s.depth - 1) / s.depth, wide = (n + s.columns - 1) / s.columns;
    const int64_t numbers = n * (2 * deep - 1) + k * wide;
    if (least == 0 || numbers < least) best = s, least = numbers;
  }
  return best;
}

/// op(A)[rows, depth]: tile after tile, each [depth][its rows].
void pack_tiles(bool transposed, int64_t rows, int64_t depth, const float* a, int64_t lda, float* packed) {
  if (!transposed) {
    for (int64_t i = 0, height; i < rows; i += height) {
      height = next_tile(rows - i);
      transpose_into(height, depth, a + i * lda, lda, packed + i * depth, height);
    }
    return;
  }
  const hn::CappedTag<float, kTileRows> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kDeep = 16;  // rows of A whose lines serve all tiles before they are left
  for (int64_t first = 0; first < depth; first += kDeep) {
    const int64_t end = std::min(first + kDeep, depth);
    for (int64_t i = 0, height; i < rows; i += height) {
      height = next_tile(rows - i);
      float* out = packed + i * depth;
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
    }
  }
}

/// As bfloat16, rounded to the nearest, ties to even.
HWY_INLINE auto rounded(hn::Vec<Tag<float>> x) {
  hn::Vec<hn::Rebind<uint16_t, Tag<float>>> half;
  __asm__("vcvtneps2bf16 %1, %0" : "=v"(half.raw) : "v"(x.raw));
  return half;
}

/// Makes of op(x)'s numbers, `depth` for each of `side` rows or columns, the words of Left::Pairs, a last one
/// with 0 above; `down`: the next k is in the row below. Then x, with rows of ld, is those words.
void pair_up(bool down, int64_t side, int64_t depth, const float*& x, int64_t& ld, float* words) {
  const Tag<float> d;
  const hn::RebindToUnsigned<Tag<float>> whole;
  const hn::Rebind<uint16_t, Tag<float>> half;
  const int64_t length = down ? side : (depth + 1) / 2;
  float* out = words;
  for (int64_t i = 0; i < (down ? depth : side); i += down ? 2 : 1, out += length) {
    const float* row = x + i * ld;
    if (down) {
      for_lanes(d, side, [&](int64_t j, auto part) HWY_ATTR {
        const auto above = i + 1 < depth ? part.load(d, row + ld + j) : hn::Zero(d);
        const auto high = hn::ShiftLeft<16>(hn::PromoteTo(whole, rounded(above)));
        const auto low = hn::PromoteTo(whole, rounded(part.load(d, row + j)));
        part.store(hn::BitCast(d, hn::Or(low, high)), d, out + j);
      });
    } else {
      uint16_t* to = reinterpret_cast<uint16_t*>(out);
      for_lanes(d, depth, [&](int64_t p, auto part) HWY_ATTR {
        part.store(rounded(part.load(d, row + p)), half, to + p);
      });
      std::memset(to + depth, 0, static_cast<size_t>(depth % 2) * sizeof *to);
    }
  }
  x = words, ld = length;
}

struct Memory {
  const float* begin = nullptr;
  int64_t numbers = 0;
};

/// What will be needed next is called into the cache meanwhile, a share of it by each tile.
struct Ahead {
  const float* at;
  int64_t step;  // from one row of a panel to the next

  Ahead(const Memory& what, int64_t tiles, int64_t depth)
      : at(what.begin), step((what.numbers + tiles * depth - 1) / (tiles * depth)) {}
};

/// C (+)= A times a row of panels. `next` is what comes after this product; without it the rows of C come that
/// are next in turn, where they lie one behind the other.
template <Left kLeft>
void multiply(int64_t m, int64_t n, int64_t depth, float alpha, const float* a, int64_t lda,
              const float* panels, bool add, float* c, int64_t ldc, const Memory& next) {
  constexpr bool kPackedA = kLeft != Left::InPlace;
  const int64_t unit = kPanelVectors * float_lanes(), across = (n + unit - 1) / unit;
  const bool rows_of_c = !next.begin && 4 * ldc <= 5 * n;
  Ahead ahead(next.begin ? next : Memory{panels, 0}, across * ((m + kTileRows - 1) / kTileRows), depth);
  for (int64_t i = 0; i < m;) {
    const int64_t rows = next_tile(m - i);
    if (rows_of_c) ahead = Ahead({c + rows * ldc, rows * ldc}, across, depth);
    for (int64_t j = 0; j < n;) {
      const Panel panel(n - j);
      const Tile tile = tile_of<kLeft>(rows, panel.vectors);
      for (int64_t p = 0, deep; p < depth; p += deep) {
        deep = next_part(depth - p, kTileDepth, 1);
        tile(deep, alpha, kPackedA ? a + p * rows : a + p, lda, panels + j * depth + p * panel.stride,
             add || p > 0, c + j, ldc, panel.last, ahead.at, ahead.step);
        ahead.at += ahead.step * deep;
      }
      j += panel.columns;
    }
    a += kPackedA ? rows * depth : rows * lda;
    c += rows * ldc;
    i += rows;
  }
}

/// kPacked: how A lies once it is packed, which it always is of pairs.
template <Left kPacked>
void product(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
             int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc) {
  constexpr bool kPairs = kPacked == Left::Pairs;
  constexpr int64_t kWord = kPairs ? 2 : 1;  // numbers; p and depth count words
  const int64_t unit = kPanelVectors * float_lanes(), size = static_cast<int64_t>(sizeof(float));
  const int64_t words = (k + kWord - 1) / kWord;
  const BlockShape shape = block_shape(m, n, words);
  const bool pack_a = kPairs || trans_a || (lda % 1024 == 0 && m > kTileRows);
  const int64_t depth_most = next_part(words, shape.depth, 1);
  const int64_t columns_most = next_part(n, shape.columns, unit), rows_most = std::min(m, kBlockRows);
  const auto floats = [&](int64_t count) { return std::static_pointer_cast<float>(allocate(count * size)); };
  const std::shared_ptr<float> panels = floats(packed_length(columns_most, depth_most));
  const std::shared_ptr<float> tiles = floats(pack_a ? rows_most * depth_most : 0);
  const std::shared_ptr<float> pairs = floats(kPairs ? std::max(rows_most, columns_most) * depth_most : 0);
  for (int64_t p = 0, depth; p < words; p += depth) {
    depth = next_part(words - p, shape.depth, 1);
    const int64_t at = kWord * p, numbers = std::min(k - at, kWord * depth);
    for (int64_t j = 0, columns; j < n; j += columns) {
      columns = next_part(n - j, shape.columns, unit);
      const float* from = trans_b ? b + j * ldb + at : b + at * ldb + j;
      int64_t ld = ldb;
      if constexpr (kPairs) pair_up(!trans_b, columns, numbers, from, ld, pairs.get());
      pack_panels(trans_b, columns, depth, from, ld, panels.get());
      const bool last = j + columns >= n;
      Memory next;
      if (m <= kFewRows && !(last && p + depth >= words)) {  // B's next block
        const int64_t q = last ? 0 : j + columns, r = kWord * (last ? p + depth : p);
        next = {trans_b ? b + q * ldb + r : b + r * ldb + q, (trans_b ? columns : kWord * depth) * ldb};
      }
      if (!pack_a) {
        multiply<Left::InPlace>(m, columns, depth, alpha, a + p, lda, panels.get(), add || p > 0, c + j, ldc,
                                next);
        continue;
      }
      for (int64_t i = 0; i < m; i += kBlockRows) {
        const int64_t rows = std::min(kBlockRows, m - i);
        from = trans_a ? a + at * lda + i : a + i * lda + at;
        ld = lda;
        if constexpr (kPairs) pair_up(trans_a, rows, numbers, from, ld, pairs.get());
        pack_tiles(trans_a, rows, depth, from, ld, tiles.get());
        multiply<kPacked>(rows, columns, depth, alpha, tiles.get(), 0, panels.get(), add || p > 0,
                          c + i * ldc + j, ldc, next);
      }
    }
  }
}

void blocked(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
             int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc, bool bf16) {
  const auto by = bf16 ? product<Left::Pairs> : product<Left::Packed>;
  by(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, add, c, ldc);
}

bool takes_bf16() { return __builtin_cpu_supports("avx512bf16"); }

#else

bool takes_bf16() { return false; }

void blocked(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
             int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc, bool) {
  blas_gemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, add ? 1.0f : 0.0f, c, ldc);
}

#endif

bool wide_vectors() { return HWY_TARGET == HWY_AVX3; }

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

HWY_EXPORT(blocked);
HWY_EXPORT(wide_vectors);
HWY_EXPORT(takes_bf16);

void block_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc, bool bf16) {
  if (k <= 0 && !add) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, 0.0f);
  }
  if (m <= 0 || n <= 0 || k <= 0) return;
  HWY_DYNAMIC_DISPATCH(blocked)(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, add, c, ldc, bf16);
}

bool use_block_gemm(int64_t m, int64_t n, int64_t k) {
  return m >= 24 && n >= 32 && k >= 16 && m * n * k >= (int64_t{1} << 20) &&
         HWY_DYNAMIC_DISPATCH(wide_vectors)();
}

bool bf16_ready() { return HWY_DYNAMIC_DISPATCH(takes_bf16)(); }

}  // namespace gradus::kernels
#endif  // HWY_ONCE
