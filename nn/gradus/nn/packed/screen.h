#pragma once

#include <vector>

#include <gradus/kernels/products/int8.h>
#include <gradus/kernels/products/packed_gemm.h>
#include <gradus/nn/packed/team.h>

namespace gradus::nn::packed {

/// Finds the largest of many x . w_j + b_j without computing most of them: a product in 8 bits tells each up to
/// an error that is bounded, with x', w' what is rounded and lengths of vectors (Cauchy and Schwarz)
///   |x . w - x' . w'| <= |x| |w - w'| + |x - x'| |w'|
/// and only the columns j whose upper bound is above all lower bounds, some few, are computed in floats, as the
/// product has them. So what is found is the same, to the bit.
class Screen {
 public:
  /// columns that are looked at at once
  static constexpr int64_t kBlock = 480;

  /// False when the numbers are too large or too small for bounds in floats, or none.
  static bool fits(int64_t n, int64_t k, const float* w, int64_t ldw);
  /// Of W [n, k], rows `ldw` apart, that fits.
  Screen(int64_t n, int64_t k, const float* w, int64_t ldw);

  /// What kernels::raise_best makes of x W^T + bias (or null): for m rows, `x_stride` apart, top and best of
  /// this share of the columns. `product` has W; block [m, kBlock] is room. False, undone, if a row is unfit.
  bool best_of(const kernels::PackedMatrix<float>& product, int64_t m, const float* x, int64_t x_stride,
               const float* bias, float* block, float* top, int32_t* best, const Share& share) const;

 private:
  kernels::Int8Matrix rounded_;  // W'
  // By column: |w - w'| and what floats' sums may be off by, and |w'|.
  std::vector<float> lost_, length_;
};

}  // namespace gradus::nn::packed
