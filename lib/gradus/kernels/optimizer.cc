#include <gradus/kernels/optimizer.h>
#include <gradus/kernels/simd_targets.h>

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/optimizer.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

template <class T>
double sum_squares(const T* x, int64_t n) {
  const Tag<double> d;
  hn::Vec<Tag<double>> sums[] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for_lanes_by<4>(d, n, [&](int64_t i, int k, auto part) HWY_ATTR {
    const auto a = load_doubles(part, x + i);
    sums[k] = hn::MulAdd(a, a, sums[k]);
  });
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
}

template <class T>
void adam(const AdamStep& step, const T* g, T* p, T* m, T* v, int64_t n) {
  const Tag<T> d;
  const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  const auto scale = set(step.grad_scale), decay = set(step.weight_decay);
  const auto beta1 = set(step.beta1), new1 = set(1 - step.beta1);
  const auto beta2 = set(step.beta2), new2 = set(1 - step.beta2);
  // lr (m / c1) / (sqrt(v / c2) + eps), with both corrections taken out of the loop
  const auto rate = set(step.lr / step.correction1), root = set(1 / std::sqrt(step.correction2));
  const auto eps = set(step.eps), kept = set(1 - step.shrink);
  const bool decays = step.weight_decay != 0;
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const auto param = part.load(d, p + i);
    auto grad = hn::Mul(part.load(d, g + i), scale);
    if (decays) grad = hn::MulAdd(decay, param, grad);
    const auto mean = hn::MulAdd(beta1, part.load(d, m + i), hn::Mul(new1, grad));
    const auto square = hn::MulAdd(beta2, part.load(d, v + i), hn::Mul(hn::Mul(new2, grad), grad));
    part.store(mean, d, m + i);
    part.store(square, d, v + i);
    const auto move = hn::Div(hn::Mul(rate, mean), hn::MulAdd(hn::Sqrt(square), root, eps));
    // 0 / (0 + eps) is 0, and has to be with eps = 0 too.
    const auto still = hn::Mul(param, kept);
    part.store(hn::Sub(still, hn::IfThenZeroElse(hn::Eq(mean, hn::Zero(d)), move)), d, p + i);
  });
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_KERNEL(sum_squares, 2);
GRADUS_KERNEL(adam, 6);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
