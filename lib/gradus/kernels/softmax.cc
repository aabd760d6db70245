#include <gradus/kernels/softmax.h>
#include <gradus/kernels/simd_targets.h>

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/softmax.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

/// row(r, from, y) for each row of x, in place where there is a mask: masked entries go in as `fill`, and
/// come out as 0 whatever became of them.
template <class T, class Row>
HWY_INLINE void masked_rows(const T* x, const uint8_t* mask, T fill, T* y, int64_t rows, int64_t n,
                            const Row& row) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    for (int64_t i = 0; mask && i < n; ++i) y[i] = mask[i] ? x[i] : fill;
    row(r, mask ? y : x, y);
    if (!mask) continue;
    for (int64_t i = 0; i < n; ++i) y[i] = mask[i] ? y[i] : T(0);
    mask += n;
  }
}

/// What masked entries go into a softmax as: exp(-infinity) is exactly 0, so the vector code need not know of
/// the mask. Only when the sum is NaN would they turn NaN with the others.
template <class T>
constexpr T kOut = -std::numeric_limits<T>::infinity();

template <class T>
void softmax_rows(const T* x, const uint8_t* mask, T* y, int64_t rows, int64_t n) {
  masked_rows(x, mask, kOut<T>, y, rows, n, [&](int64_t, const T* from, T* to) HWY_ATTR {
    if (to != from) std::copy(from, from + n, to);
    softmax_lanes(to, n);
  });
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

template <class T>
void log_softmax_rows(const T* x, const uint8_t* mask, T* y, int64_t rows, int64_t n) {
  const Tag<T> d;
  masked_rows(x, mask, kOut<T>, y, rows, n, [&](int64_t, const T* from, T* to) HWY_ATTR {
    const auto top = hn::Set(d, max_lanes(from, n));
    auto sum = hn::Zero(d);
    for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
      const auto shifted = hn::Sub(part.load(d, from + i), top);
      part.store(shifted, d, to + i);
      sum = hn::Add(sum, part.keep(d, exp_down_lanes(d, shifted), T(0)));
    });
    const auto log_sum = hn::Set(d, static_cast<T>(std::log(hn::GetLane(hn::SumOfLanes(d, sum)))));
    map_lanes(n, to, to, [&](auto shifted) HWY_ATTR { return hn::Sub(shifted, log_sum); });
  });
}

template <class T>
void log_softmax_rows_backward(const T* y, const uint8_t* mask, const T* dy, T* dx, int64_t rows, int64_t n) {
  const Tag<T> d;
  masked_rows(dy, mask, T(0), dx, rows, n, [&](int64_t r, const T* up, T* to) HWY_ATTR {
    auto lanes = hn::Zero(d);
    for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR { lanes = hn::Add(lanes, part.load(d, up + i)); });
    const auto sum = hn::SumOfLanes(d, lanes);
    map_lanes(n, y + r * n, up, to,
              [&](auto v, auto u) HWY_ATTR { return hn::NegMulAdd(exp_lanes(d, v), sum, u); });
  });
}

// ---- cross-entropy ----

/// sum_k exp(x_k - top), its terms in `out` where that is not null, and `shifted` = sum_k (x_k - top).
template <class T>
HWY_INLINE T sum_of_exp(const T* x, T top, int64_t V, T* out, T& shifted) {
  const Tag<T> d;
  const auto shift = hn::Set(d, top);
  // Two pairs of running sums: a vocabulary has tens of thousands of terms, and short sums lose less.
  hn::Vec<Tag<T>> sums[] = {hn::Zero(d), hn::Zero(d)}, all[] = {hn::Zero(d), hn::Zero(d)};
  for_lanes_by<2>(d, V, [&](int64_t i, int k, auto part) HWY_ATTR {
    const auto a = part.keep(d, hn::Sub(part.load(d, x + i), shift), T(0));
    const auto p = exp_down_lanes(d, a);
    if (out) part.store(p, d, out + i);
    sums[k] = hn::Add(sums[k], part.keep(d, p, T(0)));
    all[k] = hn::Add(all[k], a);
  });
  shifted = hn::GetLane(hn::SumOfLanes(d, hn::Add(all[0], all[1])));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sums[0], sums[1])));
}

/// x += bias; the largest of the sums.
template <class T>
HWY_INLINE T add_and_max(const T* bias, T* x, int64_t V) {
  const Tag<T> d;
  const T lowest = -std::numeric_limits<T>::infinity();
  hn::Vec<Tag<T>> tops[] = {hn::Set(d, lowest), hn::Set(d, lowest)};
  for_lanes_by<2>(d, V, [&](int64_t i, int k, auto part) HWY_ATTR {
    const auto a = hn::Add(part.load(d, x + i), part.load(d, bias + i));
    part.store(a, d, x + i);
    tops[k] = hn::Max(tops[k], part.keep(d, a, lowest));
  });
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(tops[0], tops[1])));
}

/// One row, added to the sums. dx may be x, or null, as may dbias, which is for a dx.
template <class T>
HWY_INLINE void add_row(const T* x, T top, int32_t target, int64_t V, T smoothing, T* dx, T* dbias,
                        CrossEntropySums& sums) {
  const Tag<T> d;
  const double at_target = static_cast<double>(x[target]) - top;  // before dx, which may be x
  T shifted;
  const T sum = sum_of_exp(x, top, V, dx, shifted);
  const double log_sum = std::log(static_cast<double>(sum));
  const double nll = log_sum - at_target;
  double loss = nll;
  if (smoothing != T(0)) {
    const double share = smoothing;
    loss = (1 - share) * nll + share * (log_sum - static_cast<double>(shifted) / static_cast<double>(V));
  }
  sums.loss += loss;
  sums.nll += nll;
  if (!dx) return;
  const auto factor = hn::Set(d, T(1) / sum), floor = hn::Set(d, smoothing / static_cast<T>(V));
  for_lanes(d, V, [&](int64_t k, auto part) HWY_ATTR {
    const auto g = hn::MulSub(part.load(d, dx + k), factor, floor);
    part.store(g, d, dx + k);
    if (dbias) part.store(hn::Add(part.load(d, dbias + k), g), d, dbias + k);
  });
  dx[target] -= T(1) - smoothing;
  if (dbias) dbias[target] -= T(1) - smoothing;
}

template <class T>
CrossEntropySums cross_entropy_rows(const T* logits, const int32_t* targets, int64_t rows, int64_t V,
                                    int32_t ignore_index, T smoothing, T* dlogits) {
  CrossEntropySums sums;
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = logits + r * V;
    T* dx = dlogits ? dlogits + r * V : nullptr;
    if (targets[r] != ignore_index)
      add_row<T>(x, max_lanes(x, V), targets[r], V, smoothing, dx, nullptr, sums);
    else if (dx)
      std::fill_n(dx, V, T(0));
  }
  return sums;
}

template <class T>
CrossEntropySums cross_entropy_of_layer(T* logits, const T* bias, const int32_t* targets, int64_t rows,
                                        int64_t V, T smoothing, bool gradient, T* dbias) {
  CrossEntropySums sums;
  for (int64_t r = 0; r < rows; ++r) {
    T* x = logits + r * V;
    const T top = bias ? add_and_max(bias, x, V) : max_lanes(x, V);
    add_row<T>(x, top, targets[r], V, smoothing, gradient ? x : nullptr, dbias, sums);
  }
  return sums;
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_KERNEL(softmax_rows, 5);
GRADUS_KERNEL(softmax_rows_backward, 5);
GRADUS_KERNEL(log_softmax_rows, 5);
GRADUS_KERNEL(log_softmax_rows_backward, 6);
GRADUS_KERNEL(cross_entropy_rows, 7);
GRADUS_KERNEL(cross_entropy_of_layer, 8);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
