#include <gradus/kernels/simd_targets.h>
#include <gradus/kernels/softmax.h>

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/softmax.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void softmax_rows(const T* x, const uint8_t* mask, T* y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    if (!mask) {
      if (y != x) std::copy(x, x + n, y);
      softmax_lanes(y, n);
      continue;
    }
    // exp(-infinity) is exactly 0, so the vector code need not know of the mask. Only when the sum is NaN
    // would masked entries turn NaN with the others.
    const T out = -std::numeric_limits<T>::infinity();
    for (int64_t i = 0; i < n; ++i) y[i] = mask[i] ? x[i] : out;
    softmax_lanes(y, n);
    for (int64_t i = 0; i < n; ++i) y[i] = mask[i] ? y[i] : T(0);
    mask += n;
  }
}

template <class T>
void softmax_rows_backward(const T* y, const T* dy, T* dx, int64_t rows, int64_t n) {
  const Tag<T> d;
  for (int64_t r = 0; r < rows; ++r, y += n, dy += n, dx += n) {
    // Where y is 0 so is y dy: a NaN in dy at a masked place must not get into the sum.
    const auto weighted = [&](int64_t i, auto part) HWY_ATTR {
      const auto a = part.load(d, y + i);
      return hn::IfThenZeroElse(hn::Eq(a, hn::Zero(d)), hn::Mul(a, part.load(d, dy + i)));
    };
    auto sum = hn::Zero(d);
    for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR { sum = hn::Add(sum, weighted(i, part)); });
    const auto mean = hn::SumOfLanes(d, sum);
    for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
      const auto a = part.load(d, y + i);
      const auto v = hn::Mul(a, hn::Sub(part.load(d, dy + i), mean));
      part.store(hn::IfThenZeroElse(hn::Eq(a, hn::Zero(d)), v), d, dx + i);
    });
  }
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_KERNEL(softmax_rows, 5);
GRADUS_KERNEL(softmax_rows_backward, 5);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
