// The inner part of our own matrix products, shared by packed_gemm.cc and block_gemm.cc. Compiled once per
// instruction set, like all *-inl.h of Highway: the odd include guard lets foreach_target.h in again.

#if defined(GRADUS_KERNELS_PACKED_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADUS_KERNELS_PACKED_TILE_INL_H_
#undef GRADUS_KERNELS_PACKED_TILE_INL_H_
#else
#define GRADUS_KERNELS_PACKED_TILE_INL_H_
#endif

#include <gradus/kernels/simd-inl.h>

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>

// The right-hand matrix stands in panels of two or three vectors' width (one, where it has no more), within a
// panel row after row; the columns behind the end are 0 up to a whole vector. A tile is up to kTileRows rows
// of A times one panel: its sums stay in registers (24 of AVX-512's 32, 12 of AVX2's 16) while k runs, each
// number of A is broadcast once for three products, and each vector of the panel is read once for all rows.

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 4;
#endif
constexpr int kPanelVectors = 3;

HWY_INLINE int64_t float_lanes() { return static_cast<int64_t>(hn::Lanes(Tag<float>())); }

/// Numbers in the packed form of [k, n].
HWY_INLINE int64_t packed_length(int64_t n, int64_t k) {
  const int64_t lanes = float_lanes();
  return (n + lanes - 1) / lanes * lanes * k;
}

/// The next panel of a matrix of which n columns are left.
struct Panel {
  /// real ones
  int64_t columns;
  int64_t vectors, stride;
  /// columns in the last vector
  size_t last;

  explicit HWY_INLINE Panel(int64_t n) {
    const int64_t lanes = float_lanes(), left = (n + lanes - 1) / lanes;
    vectors = left == kPanelVectors + 1 ? 2 : std::min<int64_t>(left, kPanelVectors);  // never 3 and then 1
    columns = std::min(n, vectors * lanes);
    last = static_cast<size_t>(columns - (vectors - 1) * lanes);
    stride = vectors * lanes;
  }
};

/// How the left-hand matrix lies: A[r, p] at a[r lda + p], or packed for tiles of R rows at a[p R + r]. Pairs:
/// packed, and each word of either matrix is two bfloat16 numbers, those of k = 2 p (low) and 2 p + 1.
enum class Left { InPlace, Packed, Pairs };

/// sum + x w, of pairs both products, exact before they are added (Intel's manual, VDPBF16PS).
template <Left kLeft, class V>
HWY_INLINE V multiply_add(V x, V w, V sum) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kLeft == Left::Pairs) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(w.raw), "v"(x.raw));
    return sum;
  }
#endif
  return hn::MulAdd(x, w, sum);
}

/// Rows of a panel that are called from the second-level cache before they are due.
constexpr int64_t kSoon = 8;

/// c (+)= alpha A times a panel: R rows by N vectors, `depth` deep. Of the last vector `last` are stored.
/// Meanwhile memory at `ahead`, `ahead_step` numbers further with each row of the panel, is called into the
/// cache: the next panel, which the first tile would else wait for. It need not exist.
template <int R, int N, Left kLeft>
HWY_NOINLINE void tile(int64_t depth, float alpha, const float* HWY_RESTRICT a, int64_t lda,
                       const float* HWY_RESTRICT panel, bool add, float* HWY_RESTRICT c, int64_t ldc,
                       size_t last, const float* ahead, int64_t ahead_step) {
  constexpr bool kPackedA = kLeft != Left::InPlace;
  const Tag<float> d;
  using V = hn::Vec<Tag<float>>;
  const int64_t lanes = float_lanes();
  V sum[R][N];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < N; ++v) sum[r][v] = hn::Zero(d);
    for (int v = 0; v < N; ++v) hwy::Prefetch(c + r * ldc + v * lanes);
  }
  // Two pointers to A, two to the panel and two distances: addresses must not take more registers than exist.
  const float *low = a, *high = a + (kPackedA ? R / 2 : R / 2 * lda), *soon = panel + kSoon * N * lanes;
  const int64_t lda3 = 3 * lda;
  const auto at = [&](int r) HWY_ATTR {
    if (kPackedA) return a[r];
    const float* base = r < R / 2 ? low : high;
    const int q = r < R / 2 ? r : r - R / 2;
    return q == 0 ? *base : q == 3 ? base[lda3] : base[q * lda];
  };
  for (int64_t p = 0; p < depth; ++p, panel += N * lanes, soon += N * lanes, ahead += ahead_step) {
    hwy::Prefetch(ahead);
    for (int v = 0; v < N; ++v) hwy::Prefetch(soon + v * lanes);
    V w[N];
    for (int v = 0; v < N; ++v) w[v] = hn::Load(d, panel + v * lanes);
    for (int r = 0; r < R; ++r) {
      const V x = hn::Set(d, at(r));
      for (int v = 0; v < N; ++v) sum[r][v] = multiply_add<kLeft>(x, w[v], sum[r][v]);
    }
    if (kPackedA) {
      a += R;
    } else {
      ++low, ++high;
    }
  }
  const V factor = hn::Set(d, alpha);
  const auto store_row = [&](int r, auto last_part) HWY_ATTR {
    float* out = c + r * ldc;
    const auto put = [&](int v, auto part) HWY_ATTR {
      float* to = out + v * lanes;
      part.store(add ? hn::MulAdd(factor, sum[r][v], part.load(d, to)) : hn::Mul(factor, sum[r][v]), d, to);
    };
    for (int v = 0; v + 1 < N; ++v) put(v, Whole());
    put(N - 1, last_part);
  };
  if (last == static_cast<size_t>(lanes)) {
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r) store_row(r, Whole());
  } else {
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r) store_row(r, Part{last});
  }
}

using Tile = void (*)(int64_t, float, const float*, int64_t, const float*, bool, float*, int64_t, size_t,
                      const float*, int64_t);

template <int N, Left kLeft, int... R>
constexpr std::array<Tile, sizeof...(R)> tiles(std::integer_sequence<int, R...>) {
  return {tile<R + 1, N, kLeft>...};
}

/// tile<rows, vectors>
template <Left kLeft>
HWY_INLINE Tile tile_of(int64_t rows, int64_t vectors) {
  constexpr auto heights = std::make_integer_sequence<int, kTileRows>();
  constexpr std::array by_width = {tiles<1, kLeft>(heights), tiles<2, kLeft>(heights),
                                   tiles<3, kLeft>(heights)};
  return by_width[static_cast<size_t>(vectors - 1)][static_cast<size_t>(rows - 1)];
}

/// Rows of the next tile when `rows` are left: spread evenly, 50 as 8 7 7 7 7 7 7, not as six times 8 and 2.
HWY_INLINE int64_t next_tile(int64_t rows) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  return (rows + tiles - 1) / tiles;
}

/// out[p stride + i] = w[i ldw + p] for i < rows, p < columns.
HWY_INLINE void transpose_into(int64_t rows, int64_t columns, const float* w, int64_t ldw, float* out,
                               int64_t stride) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  // Squares of 4 x 4.
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  for (; i + 4 <= rows; i += 4) {
    const float *r0 = w + i * ldw, *r1 = r0 + ldw, *r2 = r1 + ldw, *r3 = r2 + ldw;
    float* to = out + i;
    int64_t p = 0;
    for (; p + 4 <= columns; p += 4, to += 4 * stride) {
      if (p % 16 == 0) {  // the four rows after these: too short for the processor to see them coming
        for (int64_t r = 4; r < 8; ++r) hwy::Prefetch(r0 + r * ldw + p);
      }
      const auto a = hn::LoadU(d, r0 + p), b = hn::LoadU(d, r1 + p);
      const auto e = hn::LoadU(d, r2 + p), f = hn::LoadU(d, r3 + p);
      const auto ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
      const auto ef = hn::BitCast(pairs, hn::InterleaveLower(d, e, f));
      const auto AB = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
      const auto EF = hn::BitCast(pairs, hn::InterleaveUpper(d, e, f));
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ef)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ef)), d, to + stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, AB, EF)), d, to + 2 * stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, AB, EF)), d, to + 3 * stride);
    }
    for (; p < columns; ++p, to += stride) {
      to[0] = r0[p], to[1] = r1[p], to[2] = r2[p], to[3] = r3[p];
    }
  }
#endif
  for (; i < rows; ++i) {
    for (int64_t p = 0; p < columns; ++p) out[p * stride + i] = w[i * ldw + p];
  }
}

/// One panel, k deep, of op(W): W's row 0 at `w` holds the panel's first row, transposed its first column.
HWY_INLINE void pack_panel(bool transposed, const Panel& panel, int64_t k, const float* w, int64_t ldw,
                           float* packed) {
  if (transposed) {
    constexpr int64_t kDeep = 128;  // as much of the panel as is written over and over: 24 KB
    for (int64_t p = 0; p < k; p += kDeep) {
      transpose_into(panel.columns, std::min(kDeep, k - p), w + p, ldw, packed + p * panel.stride,
                     panel.stride);
    }
  } else if (panel.columns == panel.stride) {
    const Tag<float> d;
    const int64_t lanes = float_lanes();
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t v = 0; v < panel.stride; v += lanes) {
        hwy::Prefetch(w + (p + 8) * ldw + v);
        hn::Store(hn::LoadU(d, w + p * ldw + v), d, packed + p * panel.stride + v);
      }
    }
  } else {
    for (int64_t p = 0; p < k; ++p) std::copy_n(w + p * ldw, panel.columns, packed + p * panel.stride);
  }
  for (int64_t p = 0; panel.columns < panel.stride && p < k; ++p) {
    std::fill(packed + p * panel.stride + panel.columns, packed + (p + 1) * panel.stride, 0.0f);
  }
}

/// All panels, k deep, of the n columns of op(W); `packed` has room for packed_length(n, k) numbers.
HWY_INLINE void pack_panels(bool transposed, int64_t n, int64_t k, const float* w, int64_t ldw,
                            float* packed) {
  // Rows of W are packed from one end to the other, some at a time, as memory is read fastest.
  const int64_t at_once = transposed ? k : 8;
  for (int64_t p = 0; p < k; p += at_once) {
    const int64_t rows = std::min(at_once, k - p);
    for (int64_t j = 0; j < n;) {
      const Panel panel(n - j);
      pack_panel(transposed, panel, rows, transposed ? w + j * ldw : w + p * ldw + j, ldw,
                 packed + j * k + p * panel.stride);
      j += panel.columns;
    }
  }
}

}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
