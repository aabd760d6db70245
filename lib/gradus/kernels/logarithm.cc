#include <gradus/kernels/logarithm.h>
#include <gradus/kernels/simd_targets.h>

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/logarithm.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void log(const T* x, T* y, int64_t n) {
  map_lanes(n, x, y, [](auto v) HWY_ATTR { return log_lanes(Tag<T>(), v); });
}

// ---- powers ----

/// x^e = exp(e log |x|), with the sign of an odd e, in double: the error of the product is multiplied by the
/// exponential's argument, up to 104.
template <class D, class V>
HWY_INLINE V pow_lanes(D d, V x, V e) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1), half = hn::Set(d, 0.5);
  const V infinity = hn::Set(d, std::numeric_limits<double>::infinity());
  const V size = hn::Abs(x), power = exp_lanes(d, hn::Mul(e, log_lanes(d, size)));
  // 1. odd exponents keep the sign; between the integers a negative number has no power
  const V rounded = hn::Round(e), halved = hn::Mul(e, half);
  const auto finite = hn::Lt(hn::Abs(e), infinity), whole = hn::Eq(rounded, e);
  const auto odd = hn::And(hn::And(finite, whole), hn::Ne(hn::Round(halved), halved));
  V y = hn::IfThenElse(odd, hn::CopySign(power, x), power);
  const auto below = hn::And(hn::Lt(x, zero), hn::Gt(x, hn::Neg(infinity)));
  const auto between = hn::And(finite, hn::Ne(rounded, e));
  y = hn::IfThenElse(hn::And(below, between), hn::Set(d, std::numeric_limits<double>::quiet_NaN()), y);
  // 2. 1^e, x^0 and (-1)^(+-infinity) are 1, whatever the other is
  const auto unit = hn::Or(hn::Eq(x, one), hn::And(hn::Eq(size, one), hn::Eq(hn::Abs(e), infinity)));
  return hn::IfThenElse(hn::Or(unit, hn::Eq(e, zero)), one, y);
}

/// Numbers in double beyond f32's become infinity (DemoteTo may stop at the largest).
template <class DF, class D, class V>
HWY_INLINE hn::Vec<DF> narrowed(DF narrow, D d, V v) {
  const auto over = hn::Gt(hn::Abs(v), hn::Set(d, 3.4028235677973366e38));  // half an ulp above the largest
  const V factor = hn::IfThenElse(over, hn::Set(d, 2), hn::Set(d, 1));
  return hn::Mul(hn::DemoteTo(narrow, v), hn::DemoteTo(narrow, factor));
}

template <class Exponent>
HWY_INLINE void powers(const float* x, float* y, int64_t n, const Exponent& exponent) {
  const Tag<double> d;
  const hn::Rebind<float, Tag<double>> narrow;  // as many floats as a vector has doubles
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const auto power = pow_lanes(d, load_doubles(part, x + i), exponent(i, part));
    part.store(narrowed(narrow, d, power), narrow, y + i);
  });
}

void pow_by_one_f32(const float* x, float e, float* y, int64_t n) {
  const auto exponent = hn::Set(Tag<double>(), static_cast<double>(e));
  powers(x, y, n, [&](int64_t, auto) HWY_ATTR { return exponent; });
}

void pow_by_each_f32(const float* x, const float* e, float* y, int64_t n) {
  powers(x, y, n, [&](int64_t i, auto part) HWY_ATTR { return load_doubles(part, e + i); });
}

// ---- losses ----

template <class T, class Term, class Dx, class Dt>
HWY_INLINE void loss_part(LossPart what, const Term& term, const Dx& dx, const Dt& dt, const T* x, const T* t,
                          T* y, int64_t n) {
  switch (what) {
    case LossPart::term: return map_lanes(n, x, t, y, term);
    case LossPart::dx: return map_lanes(n, x, t, y, dx);
    case LossPart::dt: return map_lanes(n, x, t, y, dt);
  }
}

/// With w = 1 + (pos_weight - 1) t:  term = (1 - t) x + w softplus(-x), dx = (1 - t) - w sigmoid(-x),
/// dt = (pos_weight - 1) softplus(-x) - x
template <class T>
void bce_with_logits(LossPart what, T pos_weight, const T* x, const T* t, T* y, int64_t n) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const V one = hn::Set(d, 1), extra = hn::Set(d, pos_weight - T(1));
  const auto term = [&](V a, V b) HWY_ATTR {
    return hn::MulAdd(hn::Sub(one, b), a, hn::Mul(hn::MulAdd(extra, b, one), softplus_of_minus_lanes(d, a)));
  };
  const auto dx = [&](V a, V b) HWY_ATTR {
    return hn::NegMulAdd(hn::MulAdd(extra, b, one), sigmoid_lanes(d, hn::Neg(a)), hn::Sub(one, b));
  };
  const auto dt = [&](V a, V) HWY_ATTR { return hn::MulSub(extra, softplus_of_minus_lanes(d, a), a); };
  loss_part(what, term, dx, dt, x, t, y, n);
}

template <class T>
void kl_div(LossPart what, const T* x, const T* t, T* y, int64_t n) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const V zero = hn::Zero(d), one = hn::Set(d, 1);
  const auto if_above = [&](V b, V v) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(b, zero), v); };
  const auto term = [&](V a, V b) HWY_ATTR { return if_above(b, hn::Mul(b, hn::Sub(log_lanes(d, b), a))); };
  const auto dx = [&](V, V b) HWY_ATTR { return if_above(b, hn::Neg(b)); };
  const auto dt = [&](V a, V b) HWY_ATTR { return if_above(b, hn::Add(log_lanes(d, b), hn::Sub(one, a))); };
  loss_part(what, term, dx, dt, x, t, y, n);
}

template <class T>
void kl_div_of_logs(LossPart what, const T* x, const T* t, T* y, int64_t n) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const V one = hn::Set(d, 1);
  const auto term = [&](V a, V b) HWY_ATTR { return hn::Mul(exp_lanes(d, b), hn::Sub(b, a)); };
  const auto dx = [&](V, V b) HWY_ATTR { return hn::Neg(exp_lanes(d, b)); };
  const auto dt = [&](V a, V b) HWY_ATTR { return hn::Mul(exp_lanes(d, b), hn::Add(hn::Sub(b, a), one)); };
  loss_part(what, term, dx, dt, x, t, y, n);
}

template <class T>
double sum(const T* x, int64_t n) {
  const Tag<double> d;
  auto lanes = hn::Zero(d);
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR { lanes = hn::Add(lanes, load_doubles(part, x + i)); });
  return hn::GetLane(hn::SumOfLanes(d, lanes));
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_KERNEL(log, 3);
GRADUS_KERNEL(bce_with_logits, 6);
GRADUS_KERNEL(kl_div, 5);
GRADUS_KERNEL(kl_div_of_logs, 5);
GRADUS_KERNEL(sum, 2);

HWY_EXPORT(pow_by_one_f32);
HWY_EXPORT(pow_by_each_f32);

void pow(const float* x, float e, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(pow_by_one_f32)(x, e, y, n); }
void pow(const double* x, double e, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::pow(x[i], e);
}
void pow(const float* x, const float* e, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(pow_by_each_f32)(x, e, y, n);
}
void pow(const double* x, const double* e, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::pow(x[i], e[i]);
}

}  // namespace gradus::kernels
#endif  // HWY_ONCE
