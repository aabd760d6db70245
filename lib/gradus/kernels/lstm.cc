#include <gradus/kernels/lstm.h>
#include <gradus/kernels/simd_targets.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/lstm.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void lstm_step(int64_t B, int64_t H, T* gates, const T* c_prev, T* h, T* c) {
  const Tag<T> d;
  for (int64_t b = 0; b < B; ++b, gates += 4 * H, c_prev += H, c += H) {
    for_lanes(d, H, [&](int64_t k, auto part) HWY_ATTR {
      const auto i = sigmoid_lanes(d, part.load(d, gates + k));
      const auto f = sigmoid_lanes(d, part.load(d, gates + H + k));
      const auto g = tanh_lanes(d, part.load(d, gates + 2 * H + k));
      const auto o = sigmoid_lanes(d, part.load(d, gates + 3 * H + k));
      const auto now = hn::MulAdd(f, part.load(d, c_prev + k), hn::Mul(i, g));
      part.store(i, d, gates + k);
      part.store(f, d, gates + H + k);
      part.store(g, d, gates + 2 * H + k);
      part.store(o, d, gates + 3 * H + k);
      part.store(now, d, c + k);
      if (h) part.store(hn::Mul(o, tanh_lanes(d, now)), d, h + b * H + k);
    });
  }
}

template <class T>
void lstm_cell_state(int64_t B, int64_t H, T* gates, const T* c_prev, T* c) {
  lstm_step<T>(B, H, gates, c_prev, nullptr, c);
}

// c and tanh(c) are computed again: cheaper than tensors that keep them.
template <class T>
void lstm_step_backward(int64_t B, int64_t H, const T* gates, const T* c_prev, T* dh, T* dc, T* dgates) {
  const Tag<T> d;
  const auto one = hn::Set(d, 1);
  for (int64_t b = 0; b < B; ++b, gates += 4 * H, c_prev += H, dc += H, dgates += 4 * H) {
    for_lanes(d, H, [&](int64_t k, auto part) HWY_ATTR {
      const auto i = part.load(d, gates + k), f = part.load(d, gates + H + k);
      const auto g = part.load(d, gates + 2 * H + k), old = part.load(d, c_prev + k);
      auto dnow = part.load(d, dc + k);
      if (dh) {
        const auto o = part.load(d, gates + 3 * H + k), vdh = part.load(d, dh + b * H + k);
        const auto tc = tanh_lanes(d, hn::MulAdd(f, old, hn::Mul(i, g)));
        dnow = hn::MulAdd(hn::Mul(vdh, o), hn::NegMulAdd(tc, tc, one), dnow);
        part.store(hn::Mul(hn::Mul(vdh, tc), hn::NegMulAdd(o, o, o)), d, dgates + 3 * H + k);
        part.store(hn::Zero(d), d, dh + b * H + k);
      }
      part.store(hn::Mul(hn::Mul(dnow, g), hn::NegMulAdd(i, i, i)), d, dgates + k);
      part.store(hn::Mul(hn::Mul(dnow, old), hn::NegMulAdd(f, f, f)), d, dgates + H + k);
      part.store(hn::Mul(hn::Mul(dnow, i), hn::NegMulAdd(g, g, one)), d, dgates + 2 * H + k);
      part.store(hn::Mul(dnow, f), d, dc + k);
    });
  }
}

template <class T>
void lstm_cell_state_backward(int64_t B, int64_t H, const T* gates, const T* c_prev, T* dc, T* dgates) {
  lstm_step_backward<T>(B, H, gates, c_prev, nullptr, dc, dgates);
}

template <class T>
void lstm_output(int64_t B, int64_t H, const T* gates, T* y, T* h) {
  const Tag<T> d;
  for (int64_t b = 0; b < B; ++b, gates += 4 * H, y += H, h += H) {
    for_lanes(d, H, [&](int64_t k, auto part) HWY_ATTR {
      const auto ty = tanh_lanes(d, part.load(d, y + k));
      part.store(ty, d, y + k);
      part.store(hn::Mul(part.load(d, gates + 3 * H + k), ty), d, h + k);
    });
  }
}

template <class T>
void lstm_output_backward(int64_t B, int64_t H, const T* gates, const T* tanh_y, T* dh, T* dgates, T* dy) {
  const Tag<T> d;
  const auto one = hn::Set(d, 1);
  for (int64_t b = 0; b < B; ++b, gates += 4 * H, tanh_y += H, dh += H, dgates += 4 * H, dy += H) {
    for_lanes(d, H, [&](int64_t k, auto part) HWY_ATTR {
      const auto o = part.load(d, gates + 3 * H + k), ty = part.load(d, tanh_y + k);
      const auto vdh = part.load(d, dh + k);
      part.store(hn::Mul(hn::Mul(vdh, ty), hn::NegMulAdd(o, o, o)), d, dgates + 3 * H + k);
      part.store(hn::Mul(hn::Mul(vdh, o), hn::NegMulAdd(ty, ty, one)), d, dy + k);
      part.store(hn::Zero(d), d, dh + k);
    });
  }
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_KERNEL(lstm_step, 6);
GRADUS_KERNEL(lstm_step_backward, 7);
GRADUS_KERNEL(lstm_cell_state, 5);
GRADUS_KERNEL(lstm_output, 5);
GRADUS_KERNEL(lstm_output_backward, 7);
GRADUS_KERNEL(lstm_cell_state_backward, 6);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
