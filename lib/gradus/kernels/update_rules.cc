#include <gradus/kernels/update_rules.h>
#include <gradus/kernels/simd_targets.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/update_rules.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

// body(i, part, p, g) for all elements, p and g being the parameter and its scaled and decayed gradient; it
// returns how far p moves.
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
void sgd_step(const UpdateStep& step, const SgdRule& rule, const T* g, T* p, T* u, int64_t n) {
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
void adagrad_step(const UpdateStep& step, double eps, const T* g, T* p, T* sum, int64_t n) {
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
void rmsprop_step(const UpdateStep& step, const RmspropRule& rule, const T* g, T* p, T* v, T* m, T* u,
                  int64_t n) {
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
void adadelta_step(const UpdateStep& step, const AdadeltaRule& rule, const T* g, T* p, T* v, T* a,
                   int64_t n) {
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
void average_step(double decay, const T* x, T* average, int64_t n) {
  const Tag<T> d;
  const auto share = hn::Set(d, static_cast<T>(1 - decay));
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const auto before = part.load(d, average + i);
    part.store(hn::MulAdd(share, hn::Sub(part.load(d, x + i), before), before), d, average + i);
  });
}

constexpr auto& sgd_f32 = sgd_step<float>;
constexpr auto& sgd_f64 = sgd_step<double>;
constexpr auto& adagrad_f32 = adagrad_step<float>;
constexpr auto& adagrad_f64 = adagrad_step<double>;
constexpr auto& rmsprop_f32 = rmsprop_step<float>;
constexpr auto& rmsprop_f64 = rmsprop_step<double>;
constexpr auto& adadelta_f32 = adadelta_step<float>;
constexpr auto& adadelta_f64 = adadelta_step<double>;
constexpr auto& average_f32 = average_step<float>;
constexpr auto& average_f64 = average_step<double>;

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

HWY_EXPORT(sgd_f32);
HWY_EXPORT(sgd_f64);
HWY_EXPORT(adagrad_f32);
HWY_EXPORT(adagrad_f64);
HWY_EXPORT(rmsprop_f32);
HWY_EXPORT(rmsprop_f64);
HWY_EXPORT(adadelta_f32);
HWY_EXPORT(adadelta_f64);
HWY_EXPORT(average_f32);
HWY_EXPORT(average_f64);

void sgd(const UpdateStep& step, const SgdRule& rule, const float* g, float* p, float* u, int64_t n) {
  HWY_DYNAMIC_DISPATCH(sgd_f32)(step, rule, g, p, u, n);
}
void sgd(const UpdateStep& step, const SgdRule& rule, const double* g, double* p, double* u, int64_t n) {
  HWY_DYNAMIC_DISPATCH(sgd_f64)(step, rule, g, p, u, n);
}
void adagrad(const UpdateStep& step, double eps, const float* g, float* p, float* sum, int64_t n) {
  HWY_DYNAMIC_DISPATCH(adagrad_f32)(step, eps, g, p, sum, n);
}
void adagrad(const UpdateStep& step, double eps, const double* g, double* p, double* sum, int64_t n) {
  HWY_DYNAMIC_DISPATCH(adagrad_f64)(step, eps, g, p, sum, n);
}
void rmsprop(const UpdateStep& step, const RmspropRule& rule, const float* g, float* p, float* v, float* m,
             float* u, int64_t n) {
  HWY_DYNAMIC_DISPATCH(rmsprop_f32)(step, rule, g, p, v, m, u, n);
}
void rmsprop(const UpdateStep& step, const RmspropRule& rule, const double* g, double* p, double* v,
             double* m, double* u, int64_t n) {
  HWY_DYNAMIC_DISPATCH(rmsprop_f64)(step, rule, g, p, v, m, u, n);
}
void adadelta(const UpdateStep& step, const AdadeltaRule& rule, const float* g, float* p, float* v, float* a,
              int64_t n) {
  HWY_DYNAMIC_DISPATCH(adadelta_f32)(step, rule, g, p, v, a, n);
}
void adadelta(const UpdateStep& step, const AdadeltaRule& rule, const double* g, double* p, double* v,
              double* a, int64_t n) {
  HWY_DYNAMIC_DISPATCH(adadelta_f64)(step, rule, g, p, v, a, n);
}
void move_average(double decay, const float* x, float* average, int64_t n) {
  HWY_DYNAMIC_DISPATCH(average_f32)(decay, x, average, n);
}
void move_average(double decay, const double* x, double* average, int64_t n) {
  HWY_DYNAMIC_DISPATCH(average_f64)(decay, x, average, n);
}

}  // namespace gradus::kernels
#endif  // HWY_ONCE
