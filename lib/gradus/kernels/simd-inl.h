// What the kernels share. Compiled once per instruction set, like all *-inl.h of Highway: the odd include
// guard lets foreach_target.h in again for each of them.

#if defined(GRADUS_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GRADUS_KERNELS_SIMD_INL_H_
#undef GRADUS_KERNELS_SIMD_INL_H_
#else
#define GRADUS_KERNELS_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <gradus/kernels/dispatch.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class D>
using Num = hn::TFromD<D>;

// ---- Loops: whole vectors, then what is left --------------------------------------------------------------

/// How a loop body reads and writes where a whole vector is there.
struct Whole {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const Num<D>* p) {
    return hn::LoadU(d, p);
  }
  template <class D, class V>
  static HWY_INLINE void store(V v, D d, Num<D>* p) {
    hn::StoreU(v, d, p);
  }
  /// v, with `fill` in the lanes that lie behind the end.
  template <class D, class V>
  static HWY_INLINE V keep(D, V v, Num<D>) {
    return v;
  }
};

/// The same for the last n numbers, fewer than a vector; the lanes behind the end read as 0.
struct Part {
  size_t n;

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const Num<D>* p) const {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    return hn::MaskedLoad(hn::FirstN(d, n), d, p);  // does not touch the memory behind
#else
    HWY_ALIGN Num<D> buffer[hn::MaxLanes(D())] = {};
    std::memcpy(buffer, p, n * sizeof(Num<D>));
    return hn::Load(d, buffer);
#endif
  }
  template <class D, class V>
  HWY_INLINE void store(V v, D d, Num<D>* p) const {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    hn::BlendedStore(v, hn::FirstN(d, n), d, p);
#else
    HWY_ALIGN Num<D> buffer[hn::MaxLanes(D())];
    hn::Store(v, d, buffer);
    std::memcpy(p, buffer, n * sizeof(Num<D>));
#endif
  }
  template <class D, class V>
  HWY_INLINE V keep(D d, V v, Num<D> fill) const {
    return hn::IfThenElse(hn::FirstN(d, n), v, hn::Set(d, fill));
  }
};

/// As many numbers as a vector has doubles, as doubles.
template <class P, class T>
HWY_INLINE hn::Vec<Tag<double>> load_doubles(P part, const T* x) {
  const Tag<double> d;
  if constexpr (sizeof(T) == 4) {
    return hn::PromoteTo(d, part.load(hn::Rebind<T, Tag<double>>(), x));
  } else {
    return part.load(d, x);
  }
}

/// Calls body(i, part) for i = 0, N, 2N, ... with N the lanes of `d`; `part` loads and stores at i. Where the
/// vectors begin depends on n alone, never on addresses, so the same numbers always give the same bits.
template <class D, class Body>
HWY_INLINE void for_lanes(D d, int64_t n, const Body& body) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, Whole());
  if (i < n) body(i, Part{static_cast<size_t>(n - i)});
}

/// The same, K whole vectors at a time while there are so many: body(i, k, part) has a running sum of its own
/// for each k < K. That hides the latency of additions, and short sums lose less.
template <int K, class D, class Body>
HWY_INLINE void for_lanes_by(D d, int64_t n, const Body& body) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + K * lanes <= n; i += K * lanes) {
    HWY_UNROLL(8)
    for (int k = 0; k < K; ++k) body(i + k * lanes, k, Whole());
  }
  for_lanes(d, n - i, [&](int64_t j, auto part) HWY_ATTR { body(i + j, 0, part); });
}

/// y = f(x), y may be x.
template <class T, class F>
HWY_INLINE void map_lanes(int64_t n, const T* x, T* y, const F& f) {
  const Tag<T> d;
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR { part.store(f(part.load(d, x + i)), d, y + i); });
}

/// z = f(x, y), z may be either.
template <class T, class F>
HWY_INLINE void map_lanes(int64_t n, const T* x, const T* y, T* z, const F& f) {
  const Tag<T> d;
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    part.store(f(part.load(d, x + i), part.load(d, y + i)), d, z + i);
  });
}

/// y += a x.
template <class T>
HWY_INLINE void axpy_lanes(T a, const T* x, T* y, int64_t n) {
  const auto factor = hn::Set(Tag<T>(), a);
  map_lanes(n, x, y, y, [&](auto u, auto v) HWY_ATTR { return hn::MulAdd(factor, u, v); });
}

/// sum_i x_i y_i.
template <class T>
HWY_INLINE T dot_lanes(const T* x, const T* y, int64_t n) {
  const Tag<T> d;
  hn::Vec<Tag<T>> sums[] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for_lanes_by<4>(d, n, [&](int64_t i, int k, auto part) HWY_ATTR {
    sums[k] = hn::MulAdd(part.load(d, x + i), part.load(d, y + i), sums[k]);
  });
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
}

/// The largest of n numbers, -infinity for n = 0. NaN may or may not be passed over.
template <class T>
HWY_INLINE T max_lanes(const T* x, int64_t n) {
  const Tag<T> d;
  const T lowest = -std::numeric_limits<T>::infinity();
  auto top = hn::Set(d, lowest);
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    top = hn::Max(top, part.keep(d, part.load(d, x + i), lowest));
  });
  return hn::GetLane(hn::MaxOfLanes(d, top));
}

// ---- exp, tanh, sigmoid -----------------------------------------------------------------------------------
//
// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, and exp(r) - 1 = r + r^2 q(r). The polynomial q
// is the Chebyshev fit to (exp(r) - 1 - r) / r^2; its error is below 3e-8 relative to exp(r) - 1 in f32 and
// 1e-18 in f64. Keeping exp(r) - 1 apart is what makes tanh exact near 0.

template <class T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr float lowest = -104.0f, highest = 89.0f;  // beyond: 0 and infinity
  static constexpr float tanh_end = 10.0f;                   // tanh is 1 from here
  static constexpr float log2e = 1.44269504f;
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;  // n ln2_high is exact
  static constexpr float bias = 12582912.0f + 127.0f;  // 1.5 2^23: adding it rounds, see power_of_2
  static constexpr int mantissa = 23;
  static constexpr float q[] = {0.5f, 0.16666576989f, 0.041666554617f, 0.0083631790527f, 0.0013926183588f};
};
template <>
struct ExpConstants<double> {
  static constexpr double lowest = -746.0, highest = 710.0;
  static constexpr double tanh_end = 20.0;
  static constexpr double log2e = 1.4426950408889634;
  static constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  static constexpr double bias = 6755399441055744.0 + 1023.0;  // 1.5 2^52
  static constexpr int mantissa = 52;
  static constexpr double q[] = {0.5,
                                 0.16666666666666670991,
                                 0.041666666666666669755,
                                 0.0083333333333261351258,
                                 0.0013888888888883748305,
                                 0.00019841269874820625271,
                                 0.000024801587325547741216,
                                 2.755725540020642443e-6,
                                 2.7557273643110295328e-7,
                                 2.5105217004720745164e-8,
                                 2.0914686968086877233e-9};
};

/// min(x, limit) that keeps NaN: of two numbers of which one is NaN x86's instruction returns the second.
constexpr bool kKeepsSecond = HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR;
template <class D, class V>
HWY_INLINE V at_most(D d, V x, Num<D> limit) {
  const V high = hn::Set(d, limit);
  return kKeepsSecond ? hn::Min(high, x) : hn::IfThenElse(hn::Gt(x, high), high, x);
}
template <class D, class V>
HWY_INLINE V at_least(D d, V x, Num<D> limit) {
  const V low = hn::Set(d, limit);
  return kKeepsSecond ? hn::Max(low, x) : hn::IfThenElse(hn::Lt(x, low), low, x);
}

/// 2^n from biased = n + bias: the sum's last bits are n + 127 (1023), an exponent once shifted.
template <class D, class V>
HWY_INLINE V power_of_2(D d, V biased) {
  const hn::RebindToUnsigned<D> bits;
  return hn::BitCast(d, hn::ShiftLeft<ExpConstants<Num<D>>::mantissa>(hn::BitCast(bits, biased)));
}

/// a / b for b >= 1, far from infinity. In f32 on AVX-512 a corrected estimate, several times faster than the
/// division and as good to one bit.
template <class D, class V>
HWY_INLINE V divide(D d, V a, V b) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(Num<D>) == 4) {
    const V y = hn::ApproximateReciprocal(b);
    const V quotient = hn::Mul(a, y);
    return hn::MulAdd(hn::NegMulAdd(b, quotient, a), y, quotient);
  }
#endif
  (void)d;
  return hn::Div(a, b);
}

/// n and exp(r) - 1 with x = n ln 2 + r; n with the bias still on it.
template <class D, class V>
HWY_INLINE V reduced_expm1(D d, V x, V& biased) {
  using C = ExpConstants<Num<D>>;
  biased = hn::MulAdd(x, hn::Set(d, C::log2e), hn::Set(d, C::bias));
  const V n = hn::Sub(biased, hn::Set(d, C::bias));
  const V r = hn::NegMulAdd(n, hn::Set(d, C::ln2_low), hn::NegMulAdd(n, hn::Set(d, C::ln2_high), x));
  constexpr int terms = sizeof(C::q) / sizeof(C::q[0]);
  V q = hn::Set(d, C::q[terms - 1]);
  for (int i = terms - 2; i >= 0; --i) q = hn::MulAdd(q, r, hn::Set(d, C::q[i]));
  return hn::MulAdd(hn::Mul(r, r), q, r);
}

/// 2^n (1 + p), through the denormal numbers down to 0 and up to infinity.
template <class D, class V>
HWY_INLINE V scale_by_power(D d, V p, V biased) {
  using C = ExpConstants<Num<D>>;
  const V one = hn::Set(d, 1), bias = hn::Set(d, C::bias);
  const V n = hn::Sub(biased, bias);
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(Num<D>) == 4) {
    return V{_mm512_scalef_ps(hn::Add(p, one).raw, n.raw)};
  } else {
    return V{_mm512_scalef_pd(hn::Add(p, one).raw, n.raw)};
  }
#else
  // 2^n = 2^half 2^(n - half), each within range
  const V half = hn::MulAdd(n, hn::Set(d, Num<D>(0.5)), bias);
  const V rest = hn::Add(hn::Sub(n, hn::Sub(half, bias)), bias);
  return hn::Mul(hn::Mul(hn::Add(p, one), power_of_2(d, half)), power_of_2(d, rest));
#endif
}

/// exp for x <= 0.
template <class D, class V>
HWY_INLINE V exp_down_lanes(D d, V x) {
  V biased;
  const V p = reduced_expm1(d, at_least(d, x, ExpConstants<Num<D>>::lowest), biased);
  return scale_by_power(d, p, biased);
}

template <class D, class V>
HWY_INLINE V exp_lanes(D d, V x) {
  return exp_down_lanes(d, at_most(d, x, ExpConstants<Num<D>>::highest));
}

/// From e = exp(-2 |x|): tanh |x| = (1 - e) / (1 + e), with e - 1 computed as such.
template <class D, class V>
HWY_INLINE V tanh_lanes(D d, V x) {
  using C = ExpConstants<Num<D>>;
  const V one = hn::Set(d, 1);
  V biased;
  const V p = reduced_expm1(d, hn::Mul(at_most(d, hn::Abs(x), C::tanh_end), hn::Set(d, -2)), biased);
  const V power = power_of_2(d, biased);
  const V expm1 = hn::MulAdd(power, p, hn::Sub(power, one));
  return hn::CopySign(divide(d, hn::Neg(expm1), hn::Add(expm1, hn::Set(d, 2))), x);
}

/// From e = exp(-|x|): 1 / (1 + e) for x >= 0 and e / (1 + e) below.
template <class D, class V>
HWY_INLINE V sigmoid_lanes(D d, V x) {
  const V one = hn::Set(d, 1);
  const V e = exp_down_lanes(d, hn::Neg(hn::Abs(x)));
  return divide(d, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(e, one));
}

// ---- log --------------------------------------------------------------------------------------------------
//
// log(x) = n ln 2 + log(1 + f), x = 2^n (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). With s = f / (2 + f) and z =
// s^2, log(1 + f) = 2 atanh(s) = f - f^2 / 2 + s (f^2 / 2 + z g(z)), where g is the Chebyshev fit to (2
// atanh(s) / s - 2) / z (error below 1e-10 relative to the logarithm in f32, 1e-17 in f64); f stands alone, so
// that nothing is lost near x = 1.

template <class T>
struct LogConstants;
template <>
struct LogConstants<float> {
  static constexpr uint32_t root_half = 0x3f3504f3, one = 0x3f800000, magic = 0x4b000000;  // magic: 2^23
  static constexpr float magic_value = 8388608.0f + 127.0f;
  static constexpr float tiny = 1.17549435e-38f, lift = 33554432.0f, lifted = 25;  // below: times 2^25 first
  static constexpr float ln2_high = 0.693145752f, ln2_low = 1.42860677e-6f;        // n ln2_high is exact
  static constexpr float g[] = {0.66666666554f, 0.40000122026f, 0.2855079973f, 0.23331040834f};
};
template <>
struct LogConstants<double> {
  static constexpr uint64_t root_half = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000,
                            magic = 0x4330000000000000;
  static constexpr double magic_value = 4503599627370496.0 + 1023.0;
  static constexpr double tiny = 2.2250738585072014e-308, lift = 18014398509481984.0, lifted = 54;
  static constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  static constexpr double g[] = {0.66666666666666696969, 0.39999999999899197894, 0.28571428626114518292,
                                 0.22222211112104947364, 0.18182890778026130313, 0.15331666676597174341,
                                 0.14617128399807299883};
};

/// -infinity at 0, NaN below.
template <class D, class V>
HWY_INLINE V log_lanes(D d, V x) {
  using T = Num<D>;
  using C = LogConstants<T>;
  constexpr int mantissa = ExpConstants<T>::mantissa;
  const hn::RebindToUnsigned<D> bits;
  const auto small = hn::Lt(x, hn::Set(d, C::tiny));
  const V normal = hn::IfThenElse(small, hn::Mul(x, hn::Set(d, C::lift)), x);
  // 1. n and 1 + f: the exponent changes at sqrt(1/2)
  const auto moved = hn::Add(hn::BitCast(bits, normal), hn::Set(bits, C::one - C::root_half));
  const auto exponent = hn::ShiftRight<mantissa>(moved);
  V n = hn::Sub(hn::BitCast(d, hn::Or(exponent, hn::Set(bits, C::magic))), hn::Set(d, C::magic_value));
  n = hn::IfThenElse(small, hn::Sub(n, hn::Set(d, C::lifted)), n);
  const auto fraction = hn::And(moved, hn::Set(bits, (decltype(C::one){1} << mantissa) - 1));
  const V f = hn::Sub(hn::BitCast(d, hn::Add(fraction, hn::Set(bits, C::root_half))), hn::Set(d, 1));
  // 2. log(1 + f)
  const V s = hn::Div(f, hn::Add(f, hn::Set(d, 2))), z = hn::Mul(s, s);
  constexpr int terms = sizeof(C::g) / sizeof(C::g[0]);
  V g = hn::Set(d, C::g[terms - 1]);
  for (int i = terms - 2; i >= 0; --i) g = hn::MulAdd(g, z, hn::Set(d, C::g[i]));
  const V half = hn::Mul(hn::Mul(hn::Set(d, T(0.5)), f), f);
  const V tail = hn::MulAdd(s, hn::MulAdd(g, z, half), hn::Mul(n, hn::Set(d, C::ln2_low)));
  const V y = hn::MulAdd(n, hn::Set(d, C::ln2_high), hn::Sub(f, hn::Sub(half, tail)));
  // 3. the ends
  const V infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  const V zero = hn::Zero(d), nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
  const V above = hn::IfThenElse(hn::Lt(x, infinity), y, x);  // infinity and NaN stay
  return hn::IfThenElse(hn::Gt(x, zero), above, hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), nan));
}

/// log(1 + exp(-x)), without overflow. With u = 1 + e rounded, log(1 + e) = log(u) + (e - (u - 1)) / u.
template <class D, class V>
HWY_INLINE V softplus_of_minus_lanes(D d, V x) {
  const V one = hn::Set(d, 1), e = exp_down_lanes(d, hn::Neg(hn::Abs(x))), u = hn::Add(one, e);
  const V log1p = hn::Add(log_lanes(d, u), hn::Div(hn::Sub(e, hn::Sub(u, one)), u));
  return hn::Add(at_least(d, hn::Neg(x), Num<D>(0)), log1p);
}

/// x becomes its softmax: NaN with a NaN among them, 0 of nothing but -infinity (as masked entries come here).
template <class T>
HWY_INLINE void softmax_lanes(T* x, int64_t n) {
  const Tag<T> d;
  const T top = max_lanes(x, n);
  if (top == -std::numeric_limits<T>::infinity()) {
    const bool nan = std::any_of(x, x + n, [](T v) { return v != v; });  // which `top` may have passed over
    std::fill_n(x, n, nan ? std::numeric_limits<T>::quiet_NaN() : T(0));
    return;
  }
  const auto shift = hn::Set(d, top);
  auto sum = hn::Zero(d);
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const auto e = exp_lanes(d, hn::Sub(part.load(d, x + i), shift));
    part.store(e, d, x + i);
    sum = hn::Add(sum, part.keep(d, e, T(0)));
  });
  const auto factor = hn::Set(d, T(1) / hn::GetLane(hn::SumOfLanes(d, sum)));
  map_lanes(n, x, x, [&](auto e) HWY_ATTR { return hn::Mul(e, factor); });
}

}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
