#include <gradus/kernels/products/amx.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/kernels/products/packed_gemm.h>
#include <gradus/kernels/simd_targets.h>
#include <gradus/memory.h>

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/products/packed_gemm.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/products/packed_tile-inl.h>

// The layout: panels as packed_tile-inl.h has them, each of the whole k.

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

/// As much of k as one tile goes through: with AVX-512 this much of a panel is 48 KB.
constexpr int64_t kDepth = 256;
/// As many rows of A as meet a panel before the next one: they should stay in the second-level cache.
constexpr int64_t kBlockRows = 256;

void packed_product(int64_t begin, int64_t end, int64_t m, int64_t k, const float* a, int64_t lda,
                    const void* packed, bool add, float* c, int64_t ldc) {
  const int64_t n = end - begin;
  for (int64_t first = 0; first < m; first += kBlockRows, a += kBlockRows * lda, c += kBlockRows * ldc) {
    const int64_t block = std::min(kBlockRows, m - first);
    for (int64_t j = 0; j < n;) {
      const Panel panel(n - j);
      const float* from = static_cast<const float*>(packed) + (begin + j) * k;
      for (int64_t p = 0; p < k; p += kDepth) {
        const int64_t depth = std::min(kDepth, k - p);
        // While the tiles go through a panel, each calls for its share of the next one.
        const int64_t here = depth * panel.stride, tiles = (block + kTileRows - 1) / kTileRows;
        const float* ahead = from + p * panel.stride + here;
        for (int64_t i = 0, rows; i < block; i += rows) {
          rows = next_tile(block - i);
          tile_of<Left::InPlace>(rows, panel.vectors)(depth, 1, a + i * lda + p, lda, from + p * panel.stride,
                                                      add || p > 0, c + i * ldc + j, ldc, panel.last, ahead,
                                                      panel.stride / tiles);
          ahead += panel.stride / tiles * depth;
        }
      }
      j += panel.columns;
    }
  }
}

/// Four columns of one row at a time, as one would wait for each of its sums: the tiles', in their order.
void packed_elements(int64_t n, int64_t k, const float* a, const float* packed, int64_t count,
                     const int32_t* columns, float* out) {
  const hn::CappedTag<float, 1> d;
  const int64_t lanes = float_lanes(), vectors = (n + lanes - 1) / lanes;
  for (int64_t i = 0; i < count; i += 4) {
    const float* w[4];
    int64_t stride[4];
    for (int64_t c = 0; c < 4; ++c) {
      const int64_t column = columns[std::min(i + c, count - 1)];
      int64_t begin = column / (kPanelVectors * lanes) * kPanelVectors;  // vectors before its panel
      if (vectors % kPanelVectors == 1 && vectors > 1)  // the last four are two panels of two, see Panel
        begin = column / lanes < vectors - 4 ? begin : vectors - (column / lanes < vectors - 2 ? 4 : 2);
      stride[c] = Panel(n - begin * lanes).stride;
      w[c] = packed + begin * lanes * k + (column - begin * lanes);
    }
    hn::Vec<decltype(d)> sums[4];
    for (auto& sum : sums) sum = hn::Zero(d);
    for (int64_t p = 0; p < k; p += kDepth) {
      hn::Vec<decltype(d)> part[4];
      for (auto& sum : part) sum = hn::Zero(d);
      for (int64_t q = p; q < std::min(k, p + kDepth); ++q) {
        const auto x = hn::Set(d, a[q]);
        for (int c = 0; c < 4; ++c) part[c] = hn::MulAdd(x, hn::Set(d, w[c][q * stride[c]]), part[c]);
      }
      for (int c = 0; c < 4; ++c) sums[c] = hn::Add(part[c], sums[c]);
    }
    for (int64_t c = 0; c < std::min<int64_t>(4, count - i); ++c) out[i + c] = hn::GetLane(sums[c]);
  }
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

HWY_EXPORT(packed_length);
HWY_EXPORT(pack_panels);
HWY_EXPORT(float_lanes);
HWY_EXPORT(packed_product);
HWY_EXPORT(packed_elements);

namespace {

constexpr int64_t kAmxRows = 64, kAmxDepth = 512;  // of A, split at a time

/// The product on AMX, from panels of pieces.
void amx_product(int64_t first, int64_t end, int64_t m, int64_t k, const float* a, int64_t lda,
                 const void* packed, bool add, float* c, int64_t ldc) {
  alignas(64) static thread_local uint16_t left[kAmxRows / kAmxSide * amx_panel(kAmxDepth)];
  const uint16_t* panels = static_cast<const uint16_t*>(packed) + first / kAmxSide * amx_panel(k);
  for (int64_t i = 0; i < m; i += kAmxRows) {
    const int64_t rows = std::min(kAmxRows, m - i);
    for (int64_t p = 0; p < k; p += kAmxDepth) {
      const int64_t depth = std::min(kAmxDepth, k - p);
      const AmxPanels right{panels + amx_panel(p), amx_panel(k)};
      const auto multiply = [&](int64_t row, int64_t count) {
        const float* from = a + (i + row) * lda + p;
        float* to = c + (i + row) * ldc;
        if (amx_pack(true, false, count, depth, 1, from, lda, left))
          amx_multiply(count, end - first, depth, {left, amx_panel(depth)}, right, add || p > 0, to, ldc);
        else if (count == 1)
          amx_multiply_plainly(end - first, depth, from, right, add || p > 0, to);
        else
          return false;
        return true;
      };
      // Row by row, a row that pieces cannot stand for does not change its neighbours.
      if (!multiply(0, rows))
        for (int64_t row = 0; row < rows; ++row) multiply(row, 1);
    }
  }
}

}  // namespace

template <class T>
bool PackedMatrix<T>::has_layout_for(int64_t rows) {
  return std::is_same_v<T, float> && rows >= kAmxSide && amx_ready();
}

template <class T>
PackedMatrix<T>::PackedMatrix(Use use, int64_t n, int64_t k, const T* w, int64_t ldw, const Plan& plan)
    : use_(use), n_(n), k_(k), w_(w), ldw_(ldw) {
  if constexpr (std::is_same_v<T, float>) {
    if (plan.products < 3 || plan.rows < 2 || plan.rows > 256) return;
    if (has_layout_for(plan.rows)) {
      packed_ = allocate(amx_panels(n) * amx_panel(k) * static_cast<int64_t>(sizeof(uint16_t)));
      uint16_t* pieces = static_cast<uint16_t*>(packed_.get());
      if (amx_pack(false, use == Use::transposed, n, k, 1, w, ldw, pieces)) {
        product_ = amx_product;
        return;
      }
      packed_.reset();  // W holds what pieces cannot stand for
    }
    packed_ = allocate(HWY_DYNAMIC_DISPATCH(packed_length)(n, k) * static_cast<int64_t>(sizeof(float)));
    HWY_DYNAMIC_DISPATCH(pack_panels)
    (use == Use::transposed, n, k, w, ldw, static_cast<float*>(packed_.get()));
    product_ = &HWY_DYNAMIC_DISPATCH(packed_product);
    elements_ = &HWY_DYNAMIC_DISPATCH(packed_elements);
    lanes_ = HWY_DYNAMIC_DISPATCH(float_lanes)();
  }
}

template <class T>
void PackedMatrix<T>::product_columns(int64_t first, int64_t end, int64_t m, const T* a, int64_t lda,
                                      bool add, T* c, int64_t ldc) const {
  c += first;
  if (!product_) {
    const T* w = w_ + (use_ == Use::transposed ? first * ldw_ : first);
    gemm(false, use_ == Use::transposed, m, end - first, k_, T(1), a, lda, w, ldw_, T(add), c, ldc);
  } else if (k_ > 0) {
    product_(first, end, m, k_, a, lda, packed_.get(), add, c, ldc);
  } else if (!add) {
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, end - first, T(0));
  }
}

template <class T>
void PackedMatrix<T>::elements(const T* row, int64_t count, const int32_t* columns, T* out) const {
  elements_(n_, k_, row, static_cast<const T*>(packed_.get()), count, columns, out);
}

template <class T>
int64_t PackedMatrix<T>::column_at(int64_t wanted) const {
  if (!product_ || wanted >= n_) return std::min(wanted, n_);
  if (lanes_ == 0) return wanted / kAmxSide * kAmxSide;
  const int64_t panel = 3 * lanes_, left = (n_ + lanes_ - 1) / lanes_;
  int64_t panels = wanted / panel;
  if (panels > 0 && left - 3 * panels == 1) --panels;  // the last four vectors are two panels, see Panel
  return panels * panel;
}

template class PackedMatrix<float>;
template class PackedMatrix<double>;

}  // namespace gradus::kernels
#endif  // HWY_ONCE
