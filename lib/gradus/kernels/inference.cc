#include <gradus/kernels/inference.h>
#include <gradus/kernels/simd_targets.h>

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/inference.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

template <bool kMore>
HWY_INLINE void gru_row(int64_t H, const float* gi, const float* more, const float* gh, const float* b_ih,
                        const float* b_hh, const float* before, float* h) {
  // Blocks of kSome units: one loop for the gates r and z, a second one for the candidate n, which needs r. In
  // a single loop the next independent work would lie beyond the processor's out-of-order window.
  constexpr int64_t kSome = 128;
  HWY_ALIGN float r[kSome], z[kSome];
  const Tag<float> d;
  for (int64_t first = 0; first < H; first += kSome) {
    const auto of_input = [&](int64_t k, auto part) HWY_ATTR {
      auto x = part.load(d, gi + k);
      if constexpr (kMore) x = hn::Add(x, part.load(d, more + k));
      return b_ih ? hn::Add(x, part.load(d, b_ih + k)) : x;
    };
    const auto of_state = [&](int64_t k, auto part) HWY_ATTR {
      const auto x = part.load(d, gh + k);
      return b_hh ? hn::Add(x, part.load(d, b_hh + k)) : x;
    };
    const int64_t some = std::min(kSome, H - first);
    for_lanes(d, some, [&](int64_t j, auto part) HWY_ATTR {
      const int64_t i = first + j;
      part.store(sigmoid_lanes(d, hn::Add(of_input(i, part), of_state(i, part))), d, r + j);
      part.store(sigmoid_lanes(d, hn::Add(of_input(H + i, part), of_state(H + i, part))), d, z + j);
    });
    for_lanes(d, some, [&](int64_t j, auto part) HWY_ATTR {
      const int64_t i = first + j;
      const auto n = tanh_lanes(
          d, hn::MulAdd(part.load(d, r + j), of_state(2 * H + i, part), of_input(2 * H + i, part)));
      part.store(hn::MulAdd(part.load(d, z + j), hn::Sub(part.load(d, before + i), n), n), d, h + i);
    });
  }
}

void gru_state(int64_t R, int64_t H, const GruStateInputs& in, float* h, int64_t h_stride) {
  for (int64_t row = 0; row < R; ++row, h += h_stride) {
    const float* before = in.h_prev + row * in.h_prev_stride;
    const float *gi = in.gi + row * in.gi_stride, *gh = in.gh + row * in.gh_stride;
    if (in.gi_more) {
      gru_row<true>(H, gi, in.gi_more + row * in.gi_more_stride, gh, in.b_ih, in.b_hh, before, h);
    } else {
      gru_row<false>(H, gi, nullptr, gh, in.b_ih, in.b_hh, before, h);
    }
  }
}

void tanh_of_sum(int64_t rows, int64_t n, const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                 const float* c, int64_t c_stride, const float* bias, float* y, int64_t y_stride) {
  const Tag<float> d;
  for (int64_t row = 0; row < rows; ++row, a += a_stride, b += b_stride, y += y_stride) {
    const float* third = c ? c + row * c_stride : nullptr;
    for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
      auto sum = hn::Add(part.load(d, a + i), part.load(d, b + i));
      if (third) sum = hn::Add(sum, part.load(d, third + i));
      if (bias) sum = hn::Add(sum, part.load(d, bias + i));
      part.store(tanh_lanes(d, sum), d, y + i);
    });
  }
}

// Where the largest is, is asked after how large it is: two quick passes over numbers that are in the cache.
int64_t argmax(const float* x, int64_t n) {
  const Tag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const float lowest = -std::numeric_limits<float>::infinity();
  auto t0 = hn::Set(d, lowest), t1 = t0, t2 = t0, t3 = t0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    t0 = hn::Max(t0, hn::LoadU(d, x + i));
    t1 = hn::Max(t1, hn::LoadU(d, x + i + lanes));
    t2 = hn::Max(t2, hn::LoadU(d, x + i + 2 * lanes));
    t3 = hn::Max(t3, hn::LoadU(d, x + i + 3 * lanes));
  }
  float top = hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(t0, t1), hn::Max(t2, t3))));
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  const auto wanted = hn::Set(d, top);
  for (i = 0; i + lanes <= n; i += lanes) {
    const intptr_t at = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, x + i), wanted));
    if (at >= 0) return i + static_cast<int64_t>(at);
  }
  for (; i < n; ++i) {
    if (x[i] == top) return i;
  }
  return 0;
}

// The largest first, with the bias on the way; where it is only in the few blocks that have a better one.
template <bool kBias>
HWY_INLINE void raise_best_row(int64_t n, const float* x, const float* bias, int64_t first, float* top,
                               int32_t* best) {
  const Tag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto at = [&](int64_t i) HWY_ATTR {
    const auto logit = hn::LoadU(d, x + i);
    return kBias ? hn::Add(logit, hn::LoadU(d, bias + i)) : logit;
  };
  const auto one = [&](int64_t i) { return kBias ? x[i] + bias[i] : x[i]; };
  auto t0 = hn::Set(d, *top), t1 = t0;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    t0 = hn::Max(t0, at(i));
    t1 = hn::Max(t1, at(i + lanes));
  }
  for (; i + lanes <= n; i += lanes) t0 = hn::Max(t0, at(i));
  float largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(t0, t1)));
  for (; i < n; ++i) largest = one(i) > largest ? one(i) : largest;
  if (!(largest > *top)) return;
  *top = largest;
  const auto wanted = hn::Set(d, largest);
  for (i = 0; i + lanes <= n; i += lanes) {
    const intptr_t lane = hn::FindFirstTrue(d, hn::Eq(at(i), wanted));
    if (lane < 0) continue;
    *best = static_cast<int32_t>(first + i + static_cast<int64_t>(lane));
    return;
  }
  while (one(i) != largest) ++i;
  *best = static_cast<int32_t>(first + i);
}

void raise_best(int64_t rows, int64_t n, const float* x, int64_t stride, const float* bias, int64_t first,
                float* top, int32_t* best) {
  for (int64_t row = 0; row < rows; ++row, x += stride) {
    if (bias) {
      raise_best_row<true>(n, x, bias, first, top + row, best + row);
    } else {
      raise_best_row<false>(n, x, nullptr, first, top + row, best + row);
    }
  }
}

int64_t first_above(const float* x, int64_t begin, int64_t n, float bound) {
  const Tag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto limit = hn::Set(d, bound);
  int64_t i = begin;
  for (; i + lanes <= n; i += lanes) {
    const intptr_t at = hn::FindFirstTrue(d, hn::Gt(hn::LoadU(d, x + i), limit));
    if (at >= 0) return i + static_cast<int64_t>(at);
  }
  for (; i < n; ++i) {
    if (x[i] > bound) return i;
  }
  return n;
}

double log_sum_exp(const float* x, int64_t n) {
  const Tag<float> d;
  const float top = max_lanes(x, n);
  if (!std::isfinite(top)) return top;
  const auto shift = hn::Set(d, top);
  auto sum = hn::Zero(d);
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    sum = hn::Add(sum, part.keep(d, exp_down_lanes(d, hn::Sub(part.load(d, x + i), shift)), 0.0f));
  });
  return double(top) + std::log(double(hn::GetLane(hn::SumOfLanes(d, sum))));
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_PLAIN_KERNEL(gru_state, 5);
GRADUS_PLAIN_KERNEL(tanh_of_sum, 11);
GRADUS_PLAIN_KERNEL(argmax, 2);
GRADUS_PLAIN_KERNEL(raise_best, 8);
GRADUS_PLAIN_KERNEL(first_above, 4);
GRADUS_PLAIN_KERNEL(log_sum_exp, 2);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
