#pragma once

#include <cstdint>

// Products of float matrices on AMX, the matrix unit of newer x86 processors. It multiplies bfloat16 numbers,
// of 8 significant bits, and sums in float, at 16 times the rate of AVX-512. A float, of 24 significant bits,
// is exactly the sum of three bfloat16 pieces, x = h + m + l. The six largest of the nine products of pieces,
//   x y = h h' + h m' + m h' + m m' + h l' + l h',
// leave an error below 2^-24 |x y|, as rounding x y to float does. Six products for one leave 16 / 6 of
// AVX-512's rate. AMX adds 16 products before it adds them to a sum. So long sums are rounded less often than
// in a loop over k, and are more exact; a sum that one x y dominates is rounded once for each of its pieces,
// and has up to twice the error. If x y overflows, its six products may be infinities of either sign, whose sum
// is NaN where a float product gives infinity. (Henry, Tang, Heinecke: "Leveraging the bfloat16 artificial
// intelligence datatype for higher-precision computations", 2019.)
//
// Tiles are 16 rows of 64 bytes. A step is 32 deep: the left tile holds 16 rows, the right one 16 columns, each
// number k of a step beside number k + 16. A panel is 16 rows, or columns, of any depth: for each step three
// tiles, h, m, l.

namespace gradus::kernels {

/// rows or columns of a panel
constexpr int64_t kAmxSide = 16;
/// numbers of k in a step
constexpr int64_t kAmxStep = 32;
/// pieces in a tile
constexpr int64_t kAmxTile = 512;

/// Pieces in a panel of this depth.
constexpr int64_t amx_panel(int64_t depth) { return (depth + kAmxStep - 1) / kAmxStep * 3 * kAmxTile; }
constexpr int64_t amx_panels(int64_t n) { return (n + kAmxSide - 1) / kAmxSide; }

/// Packs alpha op(A) [n, depth] (`left`) in panels of 16 rows, or alpha op(B) [depth, n] in panels of 16
/// columns, zeroes up to whole tiles. False where a number is not finite, which pieces cannot stand for.
bool amx_pack(bool left, bool transposed, int64_t n, int64_t depth, float alpha, const float* from,
              int64_t ld, uint16_t* packed);

/// Panels, or the part of them from some step on.
struct AmxPanels {
  const uint16_t* at;
  /// from a panel to the next: amx_panel() of the depth that was packed
  int64_t stride;

  const uint16_t* operator[](int64_t panel) const { return at + panel * stride; }
};

/// Memory that will be needed next, called into the cache meanwhile: `rows` rows of `columns` numbers.
struct AmxAhead {
  const float* at = nullptr;
  int64_t rows = 0, columns = 0, ld = 0;
};

/// C[rows, columns] = A B, or C += A B with `add`, from their panels.
void amx_multiply(int64_t rows, int64_t columns, int64_t depth, AmxPanels left, AmxPanels right, bool add,
                  float* c, int64_t ldc, const AmxAhead& ahead = {});
/// The same in plain floats, for a row of A that pieces cannot stand for. B is put together again from its
/// pieces, to the bit. Needs no AMX.
void amx_multiply_plainly(int64_t columns, int64_t depth, const float* a, AmxPanels right, bool add, float* c);

}  // namespace gradus::kernels
