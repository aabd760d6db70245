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

void gru_state(int64_t R, int64_t H, const GruStateInputs& in, float* h, int64_t h_stride) {
  // Blocks of kSome units: one loop for the gates r and z, a second one for the candidate n, which needs r. In
  // a single loop the next independent work would lie beyond the processor's out-of-order window.
  constexpr int64_t kSome = 128;
  HWY_ALIGN float r[kSome], z[kSome];
  const Tag<float> d;
  const float *b_ih = in.b_ih, *b_hh = in.b_hh;
  for (int64_t row = 0; row < R; ++row, h += h_stride) {
    const float *gi = in.gi + row * in.gi_stride, *gh = in.gh + row * in.gh_stride;
    const float* more = in.gi_more ? in.gi_more + row * in.gi_more_stride : nullptr;
    const float* before = in.h_prev + row * in.h_prev_stride;
    const auto of_input = [&](int64_t k, auto part) HWY_ATTR {
      auto x = part.load(d, gi + k);
      if (more) x = hn::Add(x, part.load(d, more + k));
      return b_ih ? hn::Add(x, part.load(d, b_ih + k)) : x;
    };
    const auto of_state = [&](int64_t k, auto part) HWY_ATTR {
      const auto x = part.load(d, gh + k);
      return b_hh ? hn::Add(x, part.load(d, b_hh + k)) : x;
    };
    for (int64_t first = 0; first < H; first += kSome) {
      const int64_t some = std::min(kSome, H - first);
      for_lanes(d, some, [&](int64_t j, auto part) HWY_ATTR {
        const int64_t i = first + j;
        part.store(sigmoid_lanes(d, hn::Add(of_input(i, part), of_state(i, part))), d, r + j);
        part.store(sigmoid_lanes(d, hn::Add(of_input(H + i, part), of_state(H + i, part))), d, z + j);
      });
      for_lanes(d, some, [&](int64_t j, auto part) HWY_ATTR {
        const int64_t i = first + j;
        const auto reset =
            hn::MulAdd(part.load(d, r + j), of_state(2 * H + i, part), of_input(2 * H + i, part));
        const auto n = tanh_lanes(d, reset);
        part.store(hn::MulAdd(part.load(d, z + j), hn::Sub(part.load(d, before + i), n), n), d, h + i);
      });
    }
  }
}

void tanh_of_sum(int64_t n, const float* a, const float* b, const float* c, const float* bias, float* y) {
  const Tag<float> d;
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    auto sum = hn::Add(part.load(d, a + i), part.load(d, b + i));
    if (c) sum = hn::Add(sum, part.load(d, c + i));
    if (bias) sum = hn::Add(sum, part.load(d, bias + i));
    part.store(tanh_lanes(d, sum), d, y + i);
  });
}

/// The first i from `begin` on where holds(i, part) is true of the lane; n when there is none.
template <class Holds>
HWY_INLINE int64_t first_where(int64_t begin, int64_t n, const Holds& holds) {
  const Tag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = begin;
  for (; i + lanes <= n; i += lanes) {
    const intptr_t at = hn::FindFirstTrue(d, holds(i, Whole()));
    if (at >= 0) return i + static_cast<int64_t>(at);
  }
  if (i >= n) return n;
  const size_t rest = static_cast<size_t>(n - i);
  const intptr_t at = hn::FindFirstTrue(d, hn::And(hn::FirstN(d, rest), holds(i, Part{rest})));
  return at >= 0 ? i + static_cast<int64_t>(at) : n;
}

// How large the largest is first, with the bias on the way; where it is only in the few blocks that have a
// better one: two quick passes over numbers that are in the cache.
void raise_best(int64_t rows, int64_t n, const float* x, int64_t stride, const float* bias, int64_t first,
                float* top, int32_t* best) {
  const Tag<float> d;
  for (int64_t row = 0; row < rows; ++row, x += stride) {
    const auto at = [&](int64_t i, auto part) HWY_ATTR {
      const auto logit = part.load(d, x + i);
      return bias ? hn::Add(logit, part.load(d, bias + i)) : logit;
    };
    const float old = top[row];
    hn::Vec<Tag<float>> tops[] = {hn::Set(d, old), hn::Set(d, old)};
    for_lanes_by<2>(d, n, [&](int64_t i, int k, auto part) HWY_ATTR {
      tops[k] = hn::Max(tops[k], part.keep(d, at(i, part), old));
    });
    const float largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(tops[0], tops[1])));
    if (!(largest > old)) continue;
    const auto wanted = hn::Set(d, largest);
    top[row] = largest;
    best[row] = static_cast<int32_t>(first + first_where(0, n, [&](int64_t i, auto part) HWY_ATTR {
                                       return hn::Eq(at(i, part), wanted);
                                     }));
  }
}

int64_t argmax(const float* x, int64_t n) {
  float top = -std::numeric_limits<float>::infinity();
  int32_t best = 0;
  raise_best(1, n, x, 0, nullptr, 0, &top, &best);
  return best;
}

int64_t contenders(int64_t n, float* x, const float* bias, const float* e, const float* f, float a, float b,
                   float* least, int32_t* at) {
  const Tag<float> d;
  auto largest = hn::Set(d, *least);
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    auto y = part.load(d, x + i);
    if (bias) y = hn::Add(y, part.load(d, bias + i));
    auto error = hn::Mul(hn::Set(d, 1e-6f), hn::Abs(y));  // of this very arithmetic
    error = hn::MulAdd(hn::Set(d, a), part.load(d, e + i), error);
    error = hn::MulAdd(hn::Set(d, b), part.load(d, f + i), error);
    largest = hn::Max(largest, part.keep(d, hn::Sub(y, error), *least));
    part.store(hn::Add(y, error), d, x + i);
  });
  *least = hn::GetLane(hn::MaxOfLanes(d, largest));
  const auto bound = hn::Set(d, *least);
  int64_t found = 0;
  const auto next = [&](int64_t from) HWY_ATTR {
    return first_where(from, n,
                       [&](int64_t i, auto part) HWY_ATTR { return hn::Ge(part.load(d, x + i), bound); });
  };
  for (int64_t i = next(0); i < n; i = next(i + 1)) at[found++] = static_cast<int32_t>(i);
  return found;
}

int64_t first_above(const float* x, int64_t begin, int64_t n, float bound) {
  const Tag<float> d;
  const auto limit = hn::Set(d, bound);
  return first_where(begin, n,
                     [&](int64_t i, auto part) HWY_ATTR { return hn::Gt(part.load(d, x + i), limit); });
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
GRADUS_PLAIN_KERNEL(tanh_of_sum, 6);
GRADUS_PLAIN_KERNEL(argmax, 2);
GRADUS_PLAIN_KERNEL(raise_best, 8);
GRADUS_PLAIN_KERNEL(contenders, 9);
GRADUS_PLAIN_KERNEL(first_above, 4);
GRADUS_PLAIN_KERNEL(log_sum_exp, 2);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
