#include <gradus/kernels/products/int8.h>
#include <gradus/kernels/simd_targets.h>
#include <gradus/memory.h>

#include <algorithm>
#include <cmath>

#include <gradus/error.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/products/int8.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t kColumns = Int8Matrix::kPanel;

/// q = round(x / s), s = max |x| / 127; the scale is NaN where x is not finite.
float round_row(int64_t k, const float* x, int8_t* q) {
  const Tag<float> d;
  const hn::Rebind<int8_t, Tag<float>> d8;
  auto top = hn::Zero(d);
  bool finite = true;
  for_lanes(d, k, [&](int64_t i, auto part) HWY_ATTR {
    const auto v = part.keep(d, hn::Abs(part.load(d, x + i)), 0.0f);
    finite = finite && hn::AllTrue(d, hn::Le(v, hn::Set(d, 3.4028235e38f)));
    top = hn::Max(top, v);
  });
  const float most = hn::GetLane(hn::MaxOfLanes(d, top));
  const auto inverse = hn::Set(d, finite && most > 0 ? 127 / most : 0.0f);
  for_lanes(d, k, [&](int64_t i, auto part) HWY_ATTR {
    const auto v = finite ? part.load(d, x + i) : hn::Zero(d);
    part.store(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(v, inverse))), d8, q + i);
  });
  return finite ? most / 127 : NAN;
}

/// One row of x by one panel: k4 groups of 4 numbers. 16-bit products, which all CPUs add up in pairs.
void panel_sums(int64_t k4, const int8_t* x, const int8_t* panel, int32_t* sums) {
#if HWY_TARGET == HWY_SCALAR
  std::fill_n(sums, kColumns, 0);
  for (int64_t i = 0; i < 4 * k4 * kColumns; ++i)
    sums[i / 4 % kColumns] += x[i / (4 * kColumns) * 4 + i % 4] * panel[i];
#else
  const hn::CappedTag<int16_t, 4 * kColumns> d16;
  const hn::RepartitionToWide<decltype(d16)> d32;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  const hn::Repartition<uint64_t, decltype(d16)> d64;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d16)), kVectors = 4 * kColumns / kLanes;
  using Sums = decltype(hn::Zero(d32));
  Sums low[kVectors], high[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) low[v] = high[v] = hn::Zero(d32);
  for (int64_t p = 0; p < k4; ++p) {
    int16_t four[4] = {x[4 * p], x[4 * p + 1], x[4 * p + 2], x[4 * p + 3]};
    uint64_t bits;
    std::memcpy(&bits, four, sizeof bits);
    const auto a = hn::BitCast(d16, hn::Set(d64, bits));
    HWY_UNROLL(8)
    for (int64_t v = 0; v < kVectors; ++v) {
      const auto w = hn::PromoteTo(d16, hn::LoadU(d8, panel + p * 4 * kColumns + v * kLanes));
      low[v] = hn::ReorderWidenMulAccumulate(d32, a, w, low[v], high[v]);
    }
  }
  HWY_ALIGN int32_t pairs[2 * kColumns];
  for (int64_t v = 0; v < kVectors; ++v)
    hn::Store(hn::RearrangeToOddPlusEven(low[v], high[v]), d32, pairs + v * kLanes / 2);
  for (int64_t j = 0; j < kColumns; ++j) sums[j] = pairs[2 * j] + pairs[2 * j + 1];
#endif
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define GRADUS_VNNI 1
#endif

namespace gradus::kernels {

HWY_EXPORT(round_row);
HWY_EXPORT(panel_sums);

namespace {

#ifdef GRADUS_VNNI

// The instruction itself: of its intrinsic some compilers make twice as many moves between registers.
__attribute__((target("avx512f,avx512vnni"), always_inline)) inline __m512i plus_products(__m512i sum,
                                                                                          __m512i x,
                                                                                          __m512i w) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
  return sum;
}

/// R rows by P panels. x has 128 added, which makes it unsigned, as the instruction wants it.
template <int R, int P>
__attribute__((target("avx512f,avx512bw,avx512vnni"))) void vnni_tile(
    int64_t k4, const int8_t* x, int64_t x_stride, const int8_t* panels, const int32_t* offsets,
    const float* x_scales, const float* scales, int64_t columns, bool add, float* c, int64_t ldc) {
  __m512i sum[R][P];
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p)
      sum[r][p] = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(offsets + 16 * p));
  for (int64_t i = 0; i < k4; ++i) {
    __m512i w[P];
    for (int p = 0; p < P; ++p) w[p] = _mm512_loadu_si512(panels + (p * k4 + i) * 64);
    for (int r = 0; r < R; ++r) {
      int32_t four;
      std::memcpy(&four, x + r * x_stride + 4 * i, 4);
      const __m512i a = _mm512_set1_epi32(four);
      for (int p = 0; p < P; ++p) sum[r][p] = plus_products(sum[r][p], a, w[p]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) {
      const int64_t left = columns - 16 * p;
      const auto mask = static_cast<__mmask16>(left >= 16 ? 0xFFFFu : (1u << left) - 1);
      const __m512 s = _mm512_mul_ps(_mm512_set1_ps(x_scales[r]), _mm512_loadu_ps(scales + 16 * p));
      float* to = c + r * ldc + 16 * p;
      const __m512 value = _mm512_cvtepi32_ps(sum[r][p]);
      // One rounding or two is not left to the compiler, which would choose tile by tile.
      const __m512 y =
          add ? _mm512_fmadd_ps(value, s, _mm512_maskz_loadu_ps(mask, to)) : _mm512_mul_ps(value, s);
      _mm512_mask_storeu_ps(to, mask, y);
    }
}

using VnniTile = void (*)(int64_t, const int8_t*, int64_t, const int8_t*, const int32_t*, const float*,
                          const float*, int64_t, bool, float*, int64_t);

constexpr VnniTile kVnniTiles[4][4] = {  // of so many rows, and panels, and one
    {vnni_tile<1, 1>, vnni_tile<1, 2>, vnni_tile<1, 3>, vnni_tile<1, 4>},
    {vnni_tile<2, 1>, vnni_tile<2, 2>, vnni_tile<2, 3>, vnni_tile<2, 4>},
    {vnni_tile<3, 1>, vnni_tile<3, 2>, vnni_tile<3, 3>, vnni_tile<3, 4>},
    {vnni_tile<4, 1>, vnni_tile<4, 2>, vnni_tile<4, 3>, vnni_tile<4, 4>}};

#endif

template <class T>
std::shared_ptr<T> room_for(int64_t n) {
  std::shared_ptr<void> all = allocate(n * static_cast<int64_t>(sizeof(T)));
  std::memset(all.get(), 0, static_cast<size_t>(n) * sizeof(T));
  return std::static_pointer_cast<T>(all);
}

}  // namespace

float round_to_int8(int64_t k, float* row, int8_t* q) {
  float most = 0;
  for (int64_t i = 0; i < k; ++i) {
    const float size = std::abs(row[i]);
    if (!std::isfinite(size)) fail("Int8Matrix", "weights must be finite");
    most = std::max(most, size);
  }
  // Of 16 bits, so that 127 s is exact and the same scale is found when the rounded row is rounded again.
  int exponent = 0;
  const double mantissa = std::frexp(most / 127.0, &exponent);
  const float scale = static_cast<float>(std::ldexp(std::ceil(std::ldexp(mantissa, 16)), exponent - 16));
  constexpr float kWhole = 3 << 22;  // floats beside it are whole numbers: faster than nearbyint, a call each
  for (int64_t i = 0; i < k; ++i) {
    const float n = scale > 0 ? row[i] / scale + kWhole - kWhole : 0;
    if (q) q[i] = static_cast<int8_t>(n);
    row[i] = n * scale;
  }
  return scale;
}

Int8Matrix::Int8Matrix(int64_t n, int64_t k, const float* w, int64_t ldw) : n_(n), k_(k) {
  const int64_t panels = (n + kPanel - 1) / kPanel, k4 = (k + 3) / 4;
  panels_ = room_for<int8_t>(panels * k4 * 4 * kPanel);
  scales_ = room_for<float>(panels * kPanel);
  sums_ = room_for<int32_t>(panels * kPanel);
  std::vector<float> row(static_cast<size_t>(k));
  std::vector<int8_t> q(static_cast<size_t>(k));
  for (int64_t j = 0; j < n; ++j) {
    std::copy_n(w + j * ldw, k, row.data());
    scales_.get()[j] = round_to_int8(k, row.data(), q.data());
    int8_t* to = panels_.get() + (j / kPanel * k4 * kPanel + j % kPanel) * 4;
    for (int64_t p = 0; p < k; ++p) {
      to[p / 4 * 4 * kPanel + p % 4] = q[p];
      sums_.get()[j] += 128 * q[p];
    }
  }
}

// Highway is asked too: tests take its instruction sets away one by one. It asks the processor each time, which
// takes a virtual machine longer than a product of one row.
bool Int8Matrix::is_fast() {
#ifdef GRADUS_VNNI
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
         (hwy::SupportedTargets() & HWY_AVX3) != 0;
#else
  return false;
#endif
}

void Int8Matrix::round(int64_t m, const float* x, int64_t ldx, Int8Rows& rows) const {
  const int64_t stride = (k_ + 3) / 4 * 4;
  rows.q.assign(static_cast<size_t>(m * stride), 0);
  rows.scale.resize(static_cast<size_t>(m));
  for (int64_t i = 0; i < m; ++i)
    rows.scale[static_cast<size_t>(i)] =
        HWY_DYNAMIC_DISPATCH(round_row)(k_, x + i * ldx, rows.q.data() + i * stride);
  if (vnni_)
    for (int8_t& q : rows.q) q = static_cast<int8_t>(q ^ -128);  // + 128, as unsigned
}

void Int8Matrix::product_columns(int64_t first, int64_t end, const Int8Rows& x, bool add, float* c,
                                 int64_t ldc) const {
  const int64_t k4 = (k_ + 3) / 4, stride = 4 * k4, m = static_cast<int64_t>(x.scale.size());
  c += first;
#ifdef GRADUS_VNNI
  if (vnni_) {
    constexpr int64_t kRows = 4, kPanels = 4;
    for (int64_t j = first; j < end; j += kPanels * kPanel) {
      const int64_t columns = std::min(end - j, kPanels * kPanel), panels = (columns + kPanel - 1) / kPanel;
      for (int64_t i = 0; i < m; i += kRows)
        kVnniTiles[std::min(m - i, kRows) - 1][panels - 1](
            k4, x.q.data() + i * stride, stride, panels_.get() + j * stride, sums_.get() + j,
            x.scale.data() + i, scales_.get() + j, columns, add, c + i * ldc + (j - first), ldc);
    }
    return;
  }
#endif
  for (int64_t j = first; j < end; j += kPanel)
    for (int64_t i = 0; i < m; ++i) {
      int32_t sums[kPanel];
      HWY_DYNAMIC_DISPATCH(panel_sums)(k4, x.q.data() + i * stride, panels_.get() + j * stride, sums);
      const float scale = x.scale[static_cast<size_t>(i)];
      float* y = c + i * ldc - first;
      for (int64_t k = j; k < std::min(end, j + kPanel); ++k)
        y[k] = (add ? y[k] : -0.0f)  // which leaves every number what it is, 0 and -0, too
               + static_cast<float>(sums[k - j]) * (scale * scales_.get()[k]);
    }
}

}  // namespace gradus::kernels
#endif  // HWY_ONCE
