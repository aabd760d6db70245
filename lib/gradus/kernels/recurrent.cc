#include <gradus/kernels/recurrent.h>
#include <gradus/kernels/simd_targets.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/recurrent.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

// ---- GRU ----

/// a bias [H] that may be absent.
template <class D, class P>
HWY_INLINE hn::Vec<D> bias_at(D d, P part, const Num<D>* bias, int64_t i) {
  return bias ? part.load(d, bias + i) : hn::Zero(d);
}

/// s of sigmoid(s a), the weight of the old state.
template <class D>
HWY_INLINE hn::Vec<D> sign_of(D d, UpdateGate update) {
  return hn::Set(d, update == UpdateGate::keeps_old ? Num<D>(1) : Num<D>(-1));
}

/// What gates r (k < H) and z come of.
template <class D, class P>
HWY_INLINE hn::Vec<D> gate_sum(D d, P part, const Num<D>* gi, const Num<D>* gh, const Num<D>* b_hh,
                               int64_t k) {
  return hn::Add(hn::Add(part.load(d, gi + k), part.load(d, gh + k)), bias_at(d, part, b_hh, k));
}

template <class T>
void gru_reset_after(int64_t B, int64_t H, const T* gi, const T* gh, const T* b_hh, const T* h_prev,
                     UpdateGate update, T* h, T* gates) {
  const Tag<T> d;
  const auto sign = sign_of(d, update);
  for (int64_t b = 0; b < B; ++b, gi += 3 * H, gh += 3 * H, h_prev += H, h += H, gates += 4 * H) {
    for_lanes(d, H, [&](int64_t i, auto part) HWY_ATTR {
      const auto r = sigmoid_lanes(d, gate_sum(d, part, gi, gh, b_hh, i));
      const auto z = sigmoid_lanes(d, hn::Mul(sign, gate_sum(d, part, gi, gh, b_hh, H + i)));
      const auto gn = hn::Add(part.load(d, gh + 2 * H + i), bias_at(d, part, b_hh, 2 * H + i));
      const auto n = tanh_lanes(d, hn::MulAdd(r, gn, part.load(d, gi + 2 * H + i)));
      part.store(r, d, gates + i);
      part.store(z, d, gates + H + i);
      part.store(n, d, gates + 2 * H + i);
      part.store(gn, d, gates + 3 * H + i);
      part.store(hn::MulAdd(z, hn::Sub(part.load(d, h_prev + i), n), n), d, h + i);  // n + z (h_prev - n)
    });
  }
}

template <class T>
void gru_backward(int64_t B, int64_t H, const T* gates, const T* h_prev, const T* dh, UpdateGate update,
                  T* dgi, T* dgh, T* dh_prev) {
  const Tag<T> d;
  const auto sign = sign_of(d, update), one = hn::Set(d, 1);
  for (int64_t b = 0; b < B; ++b, gates += 4 * H, h_prev += H, dh += H, dgi += 3 * H, dh_prev += H) {
    for_lanes(d, H, [&](int64_t i, auto part) HWY_ATTR {
      const auto z = part.load(d, gates + H + i), n = part.load(d, gates + 2 * H + i);
      const auto vdh = part.load(d, dh + i), change = hn::Sub(part.load(d, h_prev + i), n);
      const auto dn = hn::Mul(hn::Mul(vdh, hn::Sub(one, z)), hn::NegMulAdd(n, n, one));
      const auto dz = hn::Mul(sign, hn::Mul(hn::Mul(vdh, change), hn::NegMulAdd(z, z, z)));
      part.store(dn, d, dgi + 2 * H + i);
      part.store(dz, d, dgi + H + i);
      part.store(hn::Mul(vdh, z), d, dh_prev + i);
      if (!dgh) return;
      T* dgh_i = dgh + b * 3 * H + i;
      const auto r = part.load(d, gates + i), gn = part.load(d, gates + 3 * H + i);
      const auto dr = hn::Mul(hn::Mul(dn, gn), hn::NegMulAdd(r, r, r));
      part.store(dr, d, dgi + i);
      part.store(dr, d, dgh_i);
      part.store(dz, d, dgh_i + H);
      part.store(hn::Mul(dn, r), d, dgh_i + 2 * H);
    });
  }
}

template <class T>
void gru_reset_before_gates(int64_t B, int64_t H, const T* gi, const T* gh, const T* b_hh, const T* h_prev,
                            UpdateGate update, T* gates, T* rh) {
  const Tag<T> d;
  const auto sign = sign_of(d, update);
  for (int64_t b = 0; b < B; ++b, gi += 3 * H, gh += 3 * H, h_prev += H, gates += 4 * H, rh += H) {
    for_lanes(d, H, [&](int64_t i, auto part) HWY_ATTR {
      const auto r = sigmoid_lanes(d, gate_sum(d, part, gi, gh, b_hh, i));
      const auto z = sigmoid_lanes(d, hn::Mul(sign, gate_sum(d, part, gi, gh, b_hh, H + i)));
      part.store(r, d, gates + i);
      part.store(z, d, gates + H + i);
      part.store(hn::Mul(r, part.load(d, h_prev + i)), d, rh + i);
    });
  }
}

template <class T>
void gru_reset_before_state(int64_t B, int64_t H, const T* gi, const T* gh_n, const T* b_hh, const T* h_prev,
                            T* h, T* gates) {
  const Tag<T> d;
  for (int64_t b = 0; b < B; ++b, gi += 3 * H, gh_n += H, h_prev += H, h += H, gates += 4 * H) {
    for_lanes(d, H, [&](int64_t i, auto part) HWY_ATTR {
      const auto gn = hn::Add(part.load(d, gh_n + i), bias_at(d, part, b_hh, 2 * H + i));
      const auto n = tanh_lanes(d, hn::Add(part.load(d, gi + 2 * H + i), gn));
      part.store(n, d, gates + 2 * H + i);
      part.store(gn, d, gates + 3 * H + i);
      const auto z = part.load(d, gates + H + i);
      part.store(hn::MulAdd(z, hn::Sub(part.load(d, h_prev + i), n), n), d, h + i);
    });
  }
}

template <class T>
void gru_reset_before_gates_backward(int64_t B, int64_t H, const T* gates, const T* h_prev, const T* drh,
                                     T* dgi, T* dh_prev) {
  const Tag<T> d;
  for (int64_t b = 0; b < B; ++b, gates += 4 * H, h_prev += H, drh += H, dgi += 3 * H, dh_prev += H) {
    for_lanes(d, H, [&](int64_t i, auto part) HWY_ATTR {
      const auto r = part.load(d, gates + i), dp = part.load(d, drh + i);
      part.store(hn::Mul(hn::Mul(dp, part.load(d, h_prev + i)), hn::NegMulAdd(r, r, r)), d, dgi + i);
      part.store(hn::MulAdd(dp, r, part.load(d, dh_prev + i)), d, dh_prev + i);
    });
  }
}

// ---- LSTM ----

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

GRADUS_KERNEL(gru_reset_after, 9);
GRADUS_KERNEL(gru_backward, 9);
GRADUS_KERNEL(gru_reset_before_gates, 9);
GRADUS_KERNEL(gru_reset_before_state, 8);
GRADUS_KERNEL(gru_reset_before_gates_backward, 7);
GRADUS_KERNEL(lstm_step, 6);
GRADUS_KERNEL(lstm_step_backward, 7);
GRADUS_KERNEL(lstm_output, 5);
GRADUS_KERNEL(lstm_output_backward, 7);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
