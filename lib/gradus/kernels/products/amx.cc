#include <gradus/kernels/products/amx.h>
#include <gradus/kernels/products/amx_compiler.h>
#include <gradus/kernels/products/gemm.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <string_view>

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
// Sums go on from what C holds, or begin with 0.
#define GRADUS_SUMS(third, fourth)     \
  if (add) {                           \
    _tile_loadd(0, c, row);            \
    _tile_loadd(1, c + kAmxSide, row); \
    _tile_loadd(2, third, row);        \
    _tile_loadd(3, fourth, row);       \
  } else {                             \
    _tile_zero(0);                     \
    _tile_zero(1);                     \
    _tile_zero(2);                     \
    _tile_zero(3);                     \
  }
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
  GRADUS_SUMS(lower, lower + kAmxSide)
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
  GRADUS_SUMS(c + 2 * kAmxSide, c + 3 * kAmxSide)
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

/// A block of C of up to kRows by kColumns panels, from these on; one that C's edge cuts off by way of `whole`.
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
void amx_multiply(int64_t, int64_t, int64_t, AmxPanels, AmxPanels, bool, float*, int64_t, const AmxAhead&) {}

#endif

}  // namespace gradus::kernels
