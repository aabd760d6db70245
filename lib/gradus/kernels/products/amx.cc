#include <gradus/kernels/products/amx.h>
#include <gradus/kernels/products/gemm.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <string_view>

// Highway has no AMX, so that what follows uses the compiler's own names; on anything but x86-64 Linux with a
// compiler that knows AMX it is empty, and amx_ready() says no.
#if defined(__x86_64__) && defined(__linux__) &&      \
    ((defined(__clang__) && __clang_major__ >= 12) || \
     (!defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 11))
#define GRADUS_HAS_AMX 1
#define GRADUS_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl")))
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef __clang__  // g++ 12 takes undefined operands of its own AVX-512 functions for ours (GCC bug 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#else
#define GRADUS_HAS_AMX 0
#endif

namespace gradus::kernels {
namespace {

std::atomic<bool> allowed{true};

/// Number k of a column, from the tiles of its panel.
float put_together(const uint16_t* panel, int64_t column, int64_t k) {
  const uint16_t* at = panel + k / kAmxStep * 3 * kAmxTile + k % kAmxSide * 2 * kAmxSide + 2 * column +
                       k % kAmxStep / kAmxSide;
  float x = 0;
  for (int piece = 2; piece >= 0; --piece)
    x += std::bit_cast<float>(static_cast<uint32_t>(at[piece * kAmxTile]) << 16);
  return x;
}

}  // namespace

void amx_allow(bool on) { allowed = on; }

void amx_multiply_plainly(int64_t columns, int64_t depth, const float* a, AmxPanels right, bool add, float* c) {
  for (int64_t j = 0; j < columns; ++j) {
    float sum = add ? c[j] : 0;
    for (int64_t k = 0; k < depth; ++k) sum += a[k] * put_together(right[j / kAmxSide], j % kAmxSide, k);
    c[j] = sum;
  }
}

#if GRADUS_HAS_AMX
namespace {

/// CPUID's bits, the state that the operating system saves, and its permission: tiles are 8 KB a thread, so
/// Linux gives them to those who ask (Documentation/arch/x86/xstate.rst).
bool find_amx() {
  const char* wanted = std::getenv("GRADUS_AMX");
  if (wanted && std::string_view(wanted) == "0") return false;
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  constexpr unsigned kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
  constexpr unsigned kAmx = 1u << 22 | 1u << 24;                           // bf16, tiles
  if ((b & kAvx512) != kAvx512 || (d & kAmx) != kAmx) return false;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27)) return false;  // XGETBV
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kState = 0x600e6;  // SSE, AVX, AVX-512's three, the tiles' two
  if ((low & kState) != kState) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// ---- packing ----

/// Two numbers of k, for 16 rows or columns, to their three pieces: the first in the lower half of each word.
/// Rounded to nearest, the pieces have either sign, and errors of many products even out. The rest after two is
/// exact.
struct Splitter {
  __m512i half, high, largest;

  GRADUS_AMX Splitter()
      : half(_mm512_set1_epi32(0x8000)), high(_mm512_set1_epi32(-0x10000)), largest(_mm512_setzero_si512()) {}

  GRADUS_AMX inline void split(__m512 x, __m512 y, uint16_t* out) {
    for (int piece = 0; piece < 3; ++piece) {
      __m512i p = _mm512_castps_si512(x), q = _mm512_castps_si512(y);
      if (piece < 2) p = _mm512_add_epi32(p, half), q = _mm512_add_epi32(q, half);
      const __m512i both = _mm512_ternarylogic_epi32(_mm512_srli_epi32(p, 16), q, high, 0xf8);  // a | (b & c)
      _mm512_storeu_si512(out + piece * kAmxTile, both);
      if (piece == 0) largest = _mm512_max_epu16(largest, _mm512_add_epi16(both, both));  // without the sign
      if (piece == 2) break;
      x = _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(p, high)));
      y = _mm512_sub_ps(y, _mm512_castsi512_ps(_mm512_and_si512(q, high)));
    }
  }

  /// Whether no exponent was that of infinity or NaN.
  GRADUS_AMX bool finite() const {
    return _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(static_cast<int16_t>(0xff00))) == 0;
  }
};

GRADUS_AMX inline __mmask16 first(int64_t n) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(n, 0, 16)) - 1);
}

/// One step of a panel from rows as they lie: row r of the tiles from x + r ld and y + r ld, of which the first
/// x_rows, y_rows rows and x_columns, y_columns columns exist.
template <bool kWhole>
GRADUS_AMX inline void pack_rows(const float* x, const float* y, int64_t ld, int64_t x_rows, int64_t y_rows,
                                 int64_t x_columns, int64_t y_columns, __m512 alpha, Splitter& splitter,
                                 uint16_t* out) {
  for (int64_t r = 0; r < kAmxSide; ++r, x += ld, y += ld, out += kAmxSide * 2) {
    __m512 p, q;
    if (kWhole) {
      p = _mm512_loadu_ps(x), q = _mm512_loadu_ps(y);
    } else {
      p = _mm512_maskz_loadu_ps(r < x_rows ? first(x_columns) : __mmask16(0), x);
      q = _mm512_maskz_loadu_ps(r < y_rows ? first(y_columns) : __mmask16(0), y);
    }
    splitter.split(_mm512_mul_ps(alpha, p), _mm512_mul_ps(alpha, q), out);
  }
}

/// to[j][i] = from[i ld + j], 16 x 16.
GRADUS_AMX inline void transpose(const float* from, int64_t ld, float* to) {
  for (int64_t q = 0; q < 4; ++q) {
    __m512 row[4];  // quarter g of row[i]: four numbers of row i + 4 g
    for (int64_t i = 0; i < 4; ++i) {
      const float* at = from + i * ld + 4 * q;
      __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(at));
      v = _mm512_insertf32x4(v, _mm_loadu_ps(at + 4 * ld), 1);
      v = _mm512_insertf32x4(v, _mm_loadu_ps(at + 8 * ld), 2);
      row[i] = _mm512_insertf32x4(v, _mm_loadu_ps(at + 12 * ld), 3);
    }
    const __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(row[0], row[1]));
    const __m512d AB = _mm512_castps_pd(_mm512_unpackhi_ps(row[0], row[1]));
    const __m512d cd = _mm512_castps_pd(_mm512_unpacklo_ps(row[2], row[3]));
    const __m512d CD = _mm512_castps_pd(_mm512_unpackhi_ps(row[2], row[3]));
    // Quarter g of each now is rows 4 g .. 4 g + 3 of one column.
    _mm512_store_pd(to + (4 * q) * 16, _mm512_unpacklo_pd(ab, cd));
    _mm512_store_pd(to + (4 * q + 1) * 16, _mm512_unpackhi_pd(ab, cd));
    _mm512_store_pd(to + (4 * q + 2) * 16, _mm512_unpacklo_pd(AB, CD));
    _mm512_store_pd(to + (4 * q + 3) * 16, _mm512_unpackhi_pd(AB, CD));
  }
}

/// One block of 16 rows, turned; the first `rows` and `columns` exist.
GRADUS_AMX inline void transpose_part(const float* from, int64_t ld, int64_t rows, int64_t columns,
                                      float* to) {
  if (rows >= 16 && columns >= 16) return transpose(from, ld, to);
  alignas(64) float whole[256];
  for (int64_t i = 0; i < 16; ++i) {
    const __mmask16 there = i < rows ? first(columns) : __mmask16(0);
    _mm512_store_ps(whole + i * 16, _mm512_maskz_loadu_ps(there, from + i * ld));
  }
  transpose(whole, 16, to);
}

/// All panels of a matrix of n rows (`left`: A) or columns (B). The memory's rows lie along k for A as it is
/// and for B transposed; the tiles' rows lie along the memory's, unless the matrix is transposed.
GRADUS_AMX bool pack(bool left, bool transposed, int64_t n, int64_t depth, float alpha, const float* from,
                     int64_t ld, uint16_t* packed) {
  Splitter splitter;
  const __m512 factor = _mm512_set1_ps(alpha);
  const bool along_k = left != transposed;
  alignas(64) float turned_x[256], turned_y[256];
  for (int64_t i = 0; i < n; i += kAmxSide) {
    for (int64_t p = 0; p < depth; p += kAmxStep, packed += 3 * kAmxTile) {
      const int64_t side = n - i, deep = depth - p;
      const float* x = along_k ? from + i * ld + p : from + p * ld + i;
      const float* y = along_k ? x + kAmxSide : x + kAmxSide * ld;
      const int64_t x_rows = along_k ? side : deep, y_rows = along_k ? side : deep - kAmxSide;
      const int64_t x_columns = along_k ? deep : side, y_columns = along_k ? deep - kAmxSide : side;
      if (transposed) {
        transpose_part(x, ld, x_rows, x_columns, turned_x);
        transpose_part(y, ld, y_rows, y_columns, turned_y);
        pack_rows<true>(turned_x, turned_y, 16, 16, 16, 16, 16, factor, splitter, packed);
      } else if (side >= kAmxSide && deep >= kAmxStep) {
        pack_rows<true>(x, y, ld, 16, 16, 16, 16, factor, splitter, packed);
      } else {
        pack_rows<false>(x, y, ld, x_rows, y_rows, x_columns, y_columns, factor, splitter, packed);
      }
    }
  }
  return splitter.finite();
}

// ---- multiplying ----

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileConfig kConfig;

/// The thread's tiles, given back at the end: a thread that uses none is switched faster.
struct Tiles {
  GRADUS_AMX Tiles() { _tile_loadconfig(&kConfig); }
  GRADUS_AMX ~Tiles() { _tile_release(); }
};

// What both of these do in the loop over steps is done without a branch: a wrong guess at the loop's end, of
// which processors make more the more branches there are, costs as much as three steps.

constexpr int64_t kLine = 16;  // numbers in a line of the cache

/// Walks over memory that will be needed, eight lines at a time, and stays at its end.
struct Walk {
  AmxAhead left;
  int64_t column = 0;

  void go() {
    for (int64_t i = 0; i < 8; ++i) __builtin_prefetch(left.at + column + i * kLine, 0, 2);
    column += 8 * kLine;
    const bool over = column >= left.columns;
    column = over ? 0 : column;
    left.at += over && left.rows > 1 ? left.ld : 0;
    left.rows -= over;
  }
};

/// The lines of C that the next block adds to, or replaces: of two rows at a time.
struct NextC {
  float* at;
  int64_t row;

  void go() {
    __builtin_prefetch(at, 1, 3);
    __builtin_prefetch(at + kAmxSide, 1, 3);
    __builtin_prefetch(at + row, 1, 3);
    __builtin_prefetch(at + row + kAmxSide, 1, 3);
    at += 2 * row;
  }
};

/// The hardware that stores tiles seems to power down after five steps without a store, and to need the time of
/// two steps to wake up. Storing a tile every fourth step, to unused memory, made long products 15 % faster.
constexpr int64_t kAwake = 4;
#define GRADUS_STAY_AWAKE(step, memory) \
  if ((step) % kAwake == kAwake - 1) _tile_stored(0, memory, 64)

/// The compiler does not see that loading a tile reads memory.
inline void settle_memory() { __asm__ volatile("" ::: "memory"); }

// Names of tiles must be digits, hence macros. Tiles 0 to 3 are the sums.
#define GRADUS_LOAD(tile, panel, piece) _tile_loadd(tile, (panel) + (piece) * kAmxTile, 64)

#define GRADUS_LEFT(piece)     \
  GRADUS_LOAD(4, a[0], piece); \
  GRADUS_LOAD(5, a[1], piece)
#define GRADUS_RIGHT(piece)    \
  GRADUS_LOAD(6, b[0], piece); \
  GRADUS_LOAD(7, b[1], piece)
#define GRADUS_PRODUCTS    \
  _tile_dpbf16ps(0, 4, 6); \
  _tile_dpbf16ps(1, 4, 7); \
  _tile_dpbf16ps(2, 5, 6); \
  _tile_dpbf16ps(3, 5, 7)

/// C (+)= A B for two panels of each; C's rows are `row` bytes apart. Of the orders of the six products this is
/// one in which a step loads 14 tiles, for most that is loaded meets two pieces.
GRADUS_AMX __attribute__((noinline)) void two_by_two(int64_t steps, const uint16_t* const* left,
                                                     const uint16_t* const* right, bool add, float* c,
                                                     int64_t row, NextC next, Walk& ahead, void* waste) {
  settle_memory();
  const uint16_t *a[] = {left[0], left[1]}, *b[] = {right[0], right[1]};
  float* const lower = c + kAmxSide * row / static_cast<int64_t>(sizeof(float));
  if (add) {
    _tile_loadd(0, c, row);
    _tile_loadd(1, c + kAmxSide, row);
    _tile_loadd(2, lower, row);
    _tile_loadd(3, lower + kAmxSide, row);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t step = 0; step < steps; ++step) {
    GRADUS_STAY_AWAKE(step, waste);
    next.go();
    ahead.go();
    GRADUS_LEFT(2);
    GRADUS_RIGHT(0);
    GRADUS_PRODUCTS;
    GRADUS_LEFT(1);
    GRADUS_PRODUCTS;
    GRADUS_RIGHT(1);
    GRADUS_PRODUCTS;
    GRADUS_LEFT(0);
    GRADUS_PRODUCTS;
    GRADUS_RIGHT(0);
    GRADUS_PRODUCTS;
    GRADUS_RIGHT(2);
    GRADUS_PRODUCTS;
    for (int i = 0; i < 2; ++i) a[i] += 3 * kAmxTile, b[i] += 3 * kAmxTile;
  }
  _tile_stored(0, c, row);
  _tile_stored(1, c + kAmxSide, row);
  _tile_stored(2, lower, row);
  _tile_stored(3, lower + kAmxSide, row);
}

#define GRADUS_PIECES(left, right) \
  GRADUS_LOAD(4, a, left);         \
  GRADUS_LOAD(5, b[0], right);     \
  _tile_dpbf16ps(0, 4, 5);         \
  GRADUS_LOAD(6, b[1], right);     \
  _tile_dpbf16ps(1, 4, 6);         \
  GRADUS_LOAD(7, b[2], right);     \
  _tile_dpbf16ps(2, 4, 7);         \
  GRADUS_LOAD(5, b[3], right);     \
  _tile_dpbf16ps(3, 4, 5)

/// The same for one panel of A and four of B, for the last rows: with fewer sums each would wait for itself.
GRADUS_AMX __attribute__((noinline)) void one_by_four(int64_t steps, const uint16_t* a,
                                                      const uint16_t* const* right, bool add, float* c,
                                                      int64_t row, void* waste) {
  settle_memory();
  const uint16_t* b[] = {right[0], right[1], right[2], right[3]};
  if (add) {
    _tile_loadd(0, c, row);
    _tile_loadd(1, c + kAmxSide, row);
    _tile_loadd(2, c + 2 * kAmxSide, row);
    _tile_loadd(3, c + 3 * kAmxSide, row);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t step = 0; step < steps; ++step) {
    GRADUS_STAY_AWAKE(step, waste);
    GRADUS_PIECES(2, 0);
    GRADUS_PIECES(1, 0);
    GRADUS_PIECES(1, 1);
    GRADUS_PIECES(0, 1);
    GRADUS_PIECES(0, 0);
    GRADUS_PIECES(0, 2);
    a += 3 * kAmxTile;
    for (const uint16_t*& p : b) p += 3 * kAmxTile;
  }
  _tile_stored(0, c, row);
  _tile_stored(1, c + kAmxSide, row);
  _tile_stored(2, c + 2 * kAmxSide, row);
  _tile_stored(3, c + 3 * kAmxSide, row);
}

void copy(int64_t rows, int64_t columns, const float* from, int64_t from_row, float* to, int64_t to_row) {
  for (int64_t i = 0; i < rows; ++i) std::copy_n(from + i * from_row, columns, to + i * to_row);
}

/// A block of C of up to kRows by kColumns panels, from these on. One that is cut off by C's edge goes by way
/// of `whole`.
template <int64_t kRows, int64_t kColumns>
void block(int64_t rows, int64_t columns, int64_t steps, AmxPanels left, AmxPanels right, bool add, float* c,
           int64_t ldc, float* next, Walk& ahead) {
  constexpr int64_t kHigh = kRows * kAmxSide, kWide = kColumns * kAmxSide, kFloat = sizeof(float);
  const uint16_t* b[kColumns];
  for (int64_t j = 0; j < kColumns; ++j) b[j] = right[j * kAmxSide < columns ? j : 0];
  const bool cut = rows < kHigh || columns < kWide;
  alignas(64) float whole[kHigh * kWide], waste[kAmxSide * kAmxSide];
  float* to = cut ? whole : c;
  const int64_t row = cut ? kWide : ldc;
  if (cut && add) copy(rows, columns, c, ldc, whole, kWide);
  if constexpr (kRows == 2) {
    const uint16_t* a[] = {left[0], left[kAmxSide < rows ? 1 : 0]};
    two_by_two(steps, a, b, add, to, row * kFloat, NextC{next, ldc}, ahead, waste);
  } else {
    one_by_four(steps, left[0], b, add, to, row * kFloat, waste);
  }
  if (cut) copy(rows, columns, whole, kWide, c, ldc);
}

}  // namespace

bool amx_ready() {
  static const bool ready = find_amx();
  return ready && allowed.load(std::memory_order_relaxed);
}

bool amx_pack_left(bool transposed, int64_t rows, int64_t depth, float alpha, const float* a, int64_t lda,
                   uint16_t* packed) {
  return pack(true, transposed, rows, depth, alpha, a, lda, packed);
}

bool amx_pack_right(bool transposed, int64_t columns, int64_t depth, const float* b, int64_t ldb,
                    uint16_t* packed) {
  return pack(false, transposed, columns, depth, 1, b, ldb, packed);
}

void amx_multiply(int64_t rows, int64_t columns, int64_t depth, AmxPanels left, AmxPanels right, bool add,
                  float* c, int64_t ldc, const AmxAhead& ahead) {
  const Tiles tiles;
  const int64_t steps = (depth + kAmxStep - 1) / kAmxStep;
  constexpr int64_t kTwo = 2 * kAmxSide;
  Walk walk{ahead};
  for (int64_t j = 0; j < columns; j += 2 * kTwo) {
    const AmxPanels b{right[j / kAmxSide], right.stride}, more{b[2], right.stride};
    const int64_t wide = std::min(2 * kTwo, columns - j);
    for (int64_t i = 0; i < rows; i += kTwo) {
      const AmxPanels a{left[i / kAmxSide], left.stride};
      const int64_t high = std::min(kTwo, rows - i);
      float *to = c + i * ldc + j, *next = i + kTwo < rows ? to + kTwo * ldc : c + j + 2 * kTwo;
      if (high <= kAmxSide && wide > kTwo) {
        block<1, 4>(high, wide, steps, a, b, add, to, ldc, next, walk);
        continue;
      }
      const bool two = wide > kTwo;
      block<2, 2>(high, std::min(kTwo, wide), steps, a, b, add, to, ldc, two ? to + kTwo : next, walk);
      if (two) block<2, 2>(high, wide - kTwo, steps, a, more, add, to + kTwo, ldc, next, walk);
    }
  }
}

#else

bool amx_ready() { return false; }
bool amx_pack_left(bool, int64_t, int64_t, float, const float*, int64_t, uint16_t*) { return false; }
bool amx_pack_right(bool, int64_t, int64_t, const float*, int64_t, uint16_t*) { return false; }
void amx_multiply(int64_t, int64_t, int64_t, AmxPanels, AmxPanels, bool, float*, int64_t, const AmxAhead&) {}

#endif

}  // namespace gradus::kernels
