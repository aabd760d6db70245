#include <gradus/kernels/products/amx.h>
#include <gradus/kernels/products/amx_compiler.h>

#include <algorithm>

namespace gradus::kernels {

#if GRADUS_HAS_AMX
namespace {

/// Two numbers of k, for 16 rows or columns, to their three pieces: the first in the lower half of each word.
/// Rounded to nearest, pieces have either sign: errors of many products even out. After two the rest is exact.
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

}  // namespace

// The memory's rows lie along k for A as it is and for B transposed; the tiles' rows lie along the memory's,
// unless the matrix is transposed.
GRADUS_AMX bool amx_pack(bool left, bool transposed, int64_t n, int64_t depth, float alpha, const float* from,
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

#else

bool amx_pack(bool, bool, int64_t, int64_t, float, const float*, int64_t, uint16_t*) { return false; }

#endif

}  // namespace gradus::kernels
