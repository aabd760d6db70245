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
void step(int64_t B, int64_t H, T* gates, const T* c_prev, T* h, T* c) {
  const Tag<T> d;
  for (int64_t b = 0; b < B; ++b, gates += 4 * H, c_prev += H, h += H, c += H) {
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
      part.store(hn::Mul(o, tanh_lanes(d, now)), d, h + k);
    });
  }
}

// c and tanh(c) are computed again: cheaper than tensors that keep them.
template <class T>
void step_back(int64_t B, int64_t H, const T* gates, const T* c_prev, T* dh, T* dc, T* dgates) {
  const Tag<T> d;
  const auto one = hn::Set(d, 1);
  for (int64_t b = 0; b < B; ++b, gates += 4 * H, c_prev += H, dh += H, dc += H, dgates += 4 * H) {
    for_lanes(d, H, [&](int64_t k, auto part) HWY_ATTR {
      const auto i = part.load(d, gates + k), f = part.load(d, gates + H + k);
      const auto g = part.load(d, gates + 2 * H + k), o = part.load(d, gates + 3 * H + k);
      const auto old = part.load(d, c_prev + k), vdh = part.load(d, dh + k);
      const auto tc = tanh_lanes(d, hn::MulAdd(f, old, hn::Mul(i, g)));
      const auto dnow = hn::MulAdd(hn::Mul(vdh, o), hn::NegMulAdd(tc, tc, one), part.load(d, dc + k));
      part.store(hn::Mul(hn::Mul(dnow, g), hn::NegMulAdd(i, i, i)), d, dgates + k);
      part.store(hn::Mul(hn::Mul(dnow, old), hn::NegMulAdd(f, f, f)), d, dgates + H + k);
      part.store(hn::Mul(hn::Mul(dnow, i), hn::NegMulAdd(g, g, one)), d, dgates + 2 * H + k);
      part.store(hn::Mul(hn::Mul(vdh, tc), hn::NegMulAdd(o, o, o)), d, dgates + 3 * H + k);
      part.store(hn::Mul(dnow, f), d, dc + k);
      part.store(hn::Zero(d), d, dh + k);
    });
  }
}

template <class T>
void cell_state(int64_t B, int64_t H, T* gates, const T* c_prev, T* c) {
  const Tag<T> d;
  for (int64_t b = 0; b < B; ++b, gates += 4 * H, c_prev += H, c += H) {
    for_lanes(d, H, [&](int64_t k, auto part) HWY_ATTR {
      const auto i = sigmoid_lanes(d, part.load(d, gates + k));
      const auto f = sigmoid_lanes(d, part.load(d, gates + H + k));
      const auto g = tanh_lanes(d, part.load(d, gates + 2 * H + k));
      part.store(i, d, gates + k);
      part.store(f, d, gates + H + k);
      part.store(g, d, gates + 2 * H + k);
      part.store(sigmoid_lanes(d, part.load(d, gates + 3 * H + k)), d, gates + 3 * H + k);
      part.store(hn::MulAdd(f, part.load(d, c_prev + k), hn::Mul(i, g)), d, c + k);
    });
  }
}

template <class T>
void output(int64_t B, int64_t H, const T* gates, T* y, T* h) {
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
void output_back(int64_t B, int64_t H, const T* gates, const T* tanh_y, T* dh, T* dgates, T* dy) {
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

template <class T>
void cell_state_back(int64_t B, int64_t H, const T* gates, const T* c_prev, T* dc, T* dgates) {
  const Tag<T> d;
  const auto one = hn::Set(d, 1);
  for (int64_t b = 0; b < B; ++b, gates += 4 * H, c_prev += H, dc += H, dgates += 4 * H) {
    for_lanes(d, H, [&](int64_t k, auto part) HWY_ATTR {
      const auto i = part.load(d, gates + k), f = part.load(d, gates + H + k);
      const auto g = part.load(d, gates + 2 * H + k), dnow = part.load(d, dc + k);
      part.store(hn::Mul(hn::Mul(dnow, g), hn::NegMulAdd(i, i, i)), d, dgates + k);
      part.store(hn::Mul(hn::Mul(dnow, part.load(d, c_prev + k)), hn::NegMulAdd(f, f, f)), d, dgates + H + k);
      part.store(hn::Mul(hn::Mul(dnow, i), hn::NegMulAdd(g, g, one)), d, dgates + 2 * H + k);
      part.store(hn::Mul(dnow, f), d, dc + k);
    });
  }
}

constexpr auto& step_f32 = step<float>;
constexpr auto& step_f64 = step<double>;
constexpr auto& step_back_f32 = step_back<float>;
constexpr auto& step_back_f64 = step_back<double>;
constexpr auto& cell_state_f32 = cell_state<float>;
constexpr auto& cell_state_f64 = cell_state<double>;
constexpr auto& output_f32 = output<float>;
constexpr auto& output_f64 = output<double>;
constexpr auto& output_back_f32 = output_back<float>;
constexpr auto& output_back_f64 = output_back<double>;
constexpr auto& cell_state_back_f32 = cell_state_back<float>;
constexpr auto& cell_state_back_f64 = cell_state_back<double>;

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

HWY_EXPORT(step_f32);
HWY_EXPORT(step_f64);
HWY_EXPORT(step_back_f32);
HWY_EXPORT(step_back_f64);
HWY_EXPORT(cell_state_f32);
HWY_EXPORT(cell_state_f64);
HWY_EXPORT(output_f32);
HWY_EXPORT(output_f64);
HWY_EXPORT(output_back_f32);
HWY_EXPORT(output_back_f64);
HWY_EXPORT(cell_state_back_f32);
HWY_EXPORT(cell_state_back_f64);

void lstm_step(int64_t B, int64_t H, float* gates, const float* c_prev, float* h, float* c) {
  HWY_DYNAMIC_DISPATCH(step_f32)(B, H, gates, c_prev, h, c);
}
void lstm_step(int64_t B, int64_t H, double* gates, const double* c_prev, double* h, double* c) {
  HWY_DYNAMIC_DISPATCH(step_f64)(B, H, gates, c_prev, h, c);
}
void lstm_step_backward(int64_t B, int64_t H, const float* gates, const float* c_prev, float* dh, float* dc,
                        float* dgates) {
  HWY_DYNAMIC_DISPATCH(step_back_f32)(B, H, gates, c_prev, dh, dc, dgates);
}
void lstm_step_backward(int64_t B, int64_t H, const double* gates, const double* c_prev, double* dh,
                        double* dc, double* dgates) {
  HWY_DYNAMIC_DISPATCH(step_back_f64)(B, H, gates, c_prev, dh, dc, dgates);
}
void lstm_cell_state(int64_t B, int64_t H, float* gates, const float* c_prev, float* c) {
  HWY_DYNAMIC_DISPATCH(cell_state_f32)(B, H, gates, c_prev, c);
}
void lstm_cell_state(int64_t B, int64_t H, double* gates, const double* c_prev, double* c) {
  HWY_DYNAMIC_DISPATCH(cell_state_f64)(B, H, gates, c_prev, c);
}
void lstm_output(int64_t B, int64_t H, const float* gates, float* y, float* h) {
  HWY_DYNAMIC_DISPATCH(output_f32)(B, H, gates, y, h);
}
void lstm_output(int64_t B, int64_t H, const double* gates, double* y, double* h) {
  HWY_DYNAMIC_DISPATCH(output_f64)(B, H, gates, y, h);
}
void lstm_output_backward(int64_t B, int64_t H, const float* gates, const float* tanh_y, float* dh,
                          float* dgates, float* dy) {
  HWY_DYNAMIC_DISPATCH(output_back_f32)(B, H, gates, tanh_y, dh, dgates, dy);
}
void lstm_output_backward(int64_t B, int64_t H, const double* gates, const double* tanh_y, double* dh,
                          double* dgates, double* dy) {
  HWY_DYNAMIC_DISPATCH(output_back_f64)(B, H, gates, tanh_y, dh, dgates, dy);
}
void lstm_cell_state_backward(int64_t B, int64_t H, const float* gates, const float* c_prev, float* dc,
                              float* dgates) {
  HWY_DYNAMIC_DISPATCH(cell_state_back_f32)(B, H, gates, c_prev, dc, dgates);
}
void lstm_cell_state_backward(int64_t B, int64_t H, const double* gates, const double* c_prev, double* dc,
                              double* dgates) {
  HWY_DYNAMIC_DISPATCH(cell_state_back_f64)(B, H, gates, c_prev, dc, dgates);
}

}  // namespace gradus::kernels
#endif  // HWY_ONCE
