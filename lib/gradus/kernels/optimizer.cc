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

// ---- the rarer rules ----

// body(i, part, g) for all elements, g being the scaled and decayed gradient, returns how far p moves.
template <class T, class Body>
HWY_INLINE void update(const UpdateStep& step, const T* g, T* p, int64_t n, const Body& body) {
  const Tag<T> d;
  const auto scale = hn::Set(d, static_cast<T>(step.grad_scale));
  const auto decay = hn::Set(d, static_cast<T>(step.weight_decay));
  const auto rate = hn::Set(d, static_cast<T>(step.lr));
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const auto param = part.load(d, p + i);
    const auto grad = hn::MulAdd(decay, param, hn::Mul(part.load(d, g + i), scale));
    part.store(hn::NegMulAdd(rate, body(i, part, grad), param), d, p + i);
  });
}

template <class T>
void sgd(const UpdateStep& step, const SgdRule& rule, const T* g, T* p, T* u, int64_t n) {
  const Tag<T> d;
  const auto momentum = hn::Set(d, static_cast<T>(rule.momentum));
  const auto share = hn::Set(d, static_cast<T>(1 - rule.dampening));
  if (!u) return update(step, g, p, n, [](int64_t, auto, auto grad) HWY_ATTR { return grad; });
  update(step, g, p, n, [&](int64_t i, auto part, auto grad) HWY_ATTR {
    auto velocity = grad;
    if (!rule.first) velocity = hn::MulAdd(momentum, part.load(d, u + i), hn::Mul(share, grad));
    part.store(velocity, d, u + i);
    return rule.nesterov ? hn::MulAdd(momentum, velocity, grad) : velocity;
  });
}

template <class T>
void adagrad(const UpdateStep& step, double eps, const T* g, T* p, T* sum, int64_t n) {
  const Tag<T> d;
  const auto small = hn::Set(d, static_cast<T>(eps));
  update(step, g, p, n, [&](int64_t i, auto part, auto grad) HWY_ATTR {
    const auto total = hn::MulAdd(grad, grad, part.load(d, sum + i));
    part.store(total, d, sum + i);
    const auto move = hn::Div(grad, hn::Add(hn::Sqrt(total), small));
    return hn::IfThenZeroElse(hn::Eq(grad, hn::Zero(d)), move);  // 0 / 0 with eps = 0
  });
}

template <class T>
void rmsprop(const UpdateStep& step, const RmspropRule& rule, const T* g, T* p, T* v, T* m, T* u, int64_t n) {
  const Tag<T> d;
  const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  const auto alpha = set(rule.alpha), rest = set(1 - rule.alpha), eps = set(rule.eps);
  const auto momentum = set(rule.momentum);
  update(step, g, p, n, [&](int64_t i, auto part, auto grad) HWY_ATTR {
    const auto square = hn::MulAdd(alpha, part.load(d, v + i), hn::Mul(hn::Mul(rest, grad), grad));
    part.store(square, d, v + i);
    auto variance = square;
    if (m) {
      const auto mean = hn::MulAdd(alpha, part.load(d, m + i), hn::Mul(rest, grad));
      part.store(mean, d, m + i);
      variance = hn::Max(hn::NegMulAdd(mean, mean, square), hn::Zero(d));  // rounding can make it negative
    }
    auto move = hn::Div(grad, hn::Add(hn::Sqrt(variance), eps));
    move = hn::IfThenZeroElse(hn::Eq(grad, hn::Zero(d)), move);
    if (!u) return move;
    const auto velocity = hn::MulAdd(momentum, part.load(d, u + i), move);
    part.store(velocity, d, u + i);
    return velocity;
  });
}

template <class T>
void adadelta(const UpdateStep& step, const AdadeltaRule& rule, const T* g, T* p, T* v, T* a, int64_t n) {
  const Tag<T> d;
  const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  const auto rho = set(rule.rho), rest = set(1 - rule.rho), eps = set(rule.eps);
  update(step, g, p, n, [&](int64_t i, auto part, auto grad) HWY_ATTR {
    const auto square = hn::MulAdd(rho, part.load(d, v + i), hn::Mul(hn::Mul(rest, grad), grad));
    const auto moved = part.load(d, a + i);
    const auto move = hn::Mul(hn::Sqrt(hn::Div(hn::Add(moved, eps), hn::Add(square, eps))), grad);
    part.store(square, d, v + i);
    part.store(hn::MulAdd(rho, moved, hn::Mul(hn::Mul(rest, move), move)), d, a + i);
    return move;
  });
}

template <class T>
void move_average(double decay, const T* x, T* average, int64_t n) {
  const auto share = hn::Set(Tag<T>(), static_cast<T>(1 - decay));
  map_lanes(n, x, average, average,
            [&](auto now, auto mean) HWY_ATTR { return hn::MulAdd(share, hn::Sub(now, mean), mean); });
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_KERNEL(sum_squares, 2);
GRADUS_KERNEL(adam, 6);
GRADUS_KERNEL(sgd, 6);
GRADUS_KERNEL(adagrad, 6);
GRADUS_KERNEL(rmsprop, 8);
GRADUS_KERNEL(adadelta, 7);
GRADUS_KERNEL(move_average, 4);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
