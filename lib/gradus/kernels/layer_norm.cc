#include <gradus/kernels/layer_norm.h>
#include <gradus/kernels/simd_targets.h>

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/layer_norm.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

// A row is measured from its first entry: where all are close to one large number, the differences are exact.
template <class T>
void layer_norm(int64_t rows, int64_t n, const T* x, int64_t ldx, const T* gamma, const T* beta, T eps,
                bool add, T* y, int64_t ldy, T* stats) {
  if (n == 0) return;
  const Tag<T> d;
  const T share = T(1) / static_cast<T>(n);
  for (int64_t r = 0; r < rows; ++r, x += ldx, y += ldy, stats += 2) {
    const auto first = hn::Set(d, x[0]);
    auto sum = hn::Zero(d);
    for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
      sum = hn::Add(sum, part.keep(d, hn::Sub(part.load(d, x + i), first), T(0)));
    });
    const T mean = hn::GetLane(hn::SumOfLanes(d, sum)) * share;
    const auto middle = hn::Set(d, mean);
    auto squares = hn::Zero(d);
    for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
      const auto centred = part.keep(d, hn::Sub(hn::Sub(part.load(d, x + i), first), middle), T(0));
      squares = hn::MulAdd(centred, centred, squares);
    });
    const T inverse = T(1) / std::sqrt(hn::GetLane(hn::SumOfLanes(d, squares)) * share + eps);
    const auto factor = hn::Set(d, inverse);
    for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
      const auto xh = hn::Mul(hn::Sub(hn::Sub(part.load(d, x + i), first), middle), factor);
      const auto out = hn::MulAdd(part.load(d, gamma + i), xh, part.load(d, beta + i));
      part.store(add ? hn::Add(part.load(d, y + i), out) : out, d, y + i);
    });
    stats[0] = mean;
    stats[1] = inverse;
  }
}

// One pass for the two means and the parameters' gradients, one for dx; xh is made again in each.
template <class T>
void layer_norm_backward(int64_t rows, int64_t n, const T* x, int64_t ldx, const T* gamma, const T* stats,
                         const T* dy, int64_t lddy, bool add, T* dx, int64_t lddx, T* dgamma, T* dbeta) {
  if (n == 0) return;
  const Tag<T> d;
  const T share = T(1) / static_cast<T>(n);
  for (int64_t r = 0; r < rows; ++r, x += ldx, dy += lddy, dx += lddx, stats += 2) {
    const auto first = hn::Set(d, x[0]), middle = hn::Set(d, stats[0]), factor = hn::Set(d, stats[1]);
    const auto normal = [&](int64_t i, auto part) HWY_ATTR {
      return hn::Mul(hn::Sub(hn::Sub(part.load(d, x + i), first), middle), factor);
    };
    auto sum = hn::Zero(d), product = hn::Zero(d);
    for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
      const auto up = part.load(d, dy + i), xh = normal(i, part);
      const auto g = part.keep(d, hn::Mul(up, part.load(d, gamma + i)), T(0));
      sum = hn::Add(sum, g);
      product = hn::MulAdd(g, xh, product);
      part.store(hn::MulAdd(up, xh, part.load(d, dgamma + i)), d, dgamma + i);
      part.store(hn::Add(up, part.load(d, dbeta + i)), d, dbeta + i);
    });
    const auto mean = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, sum)) * share);
    const auto along = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, product)) * share);
    for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
      const auto g = hn::Mul(part.load(d, dy + i), part.load(d, gamma + i));
      const auto out = hn::Mul(hn::NegMulAdd(normal(i, part), along, hn::Sub(g, mean)), factor);
      part.store(add ? hn::Add(part.load(d, dx + i), out) : out, d, dx + i);
    });
  }
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_KERNEL(layer_norm, 11);
GRADUS_KERNEL(layer_norm_backward, 13);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
