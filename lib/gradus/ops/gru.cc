#include <gradus/ops/gru.h>

#include <fmt/core.h>

#include <algorithm>

#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/gemm.h>
#include <gradus/kernels/gru.h>
#include <gradus/kernels/packed_gemm.h>
#include <gradus/numeric.h>
#include <gradus/op_case.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/real_steps.h>
#include <gradus/ops/recurrence.h>
#include <gradus/ops/shape.h>

// GRU (Cho et al. 2014), gates stacked r, z, n.
//   ai = W_ih x + b_ih,  ah = W_hh h + b_hh
//   r = s(ai_r + ah_r),  z = s(ai_z + ah_z),  h' = (1 - z) n + z h
//   reset after:  n = tanh(ai_n + r ah_n)
//   reset before: n = tanh(ai_n + W_hn (r h) + b_hn)
// Bahdanau et al. 2014 let z weight the new state, h' = (1 - z) h + z n. As 1 - s(a) = s(-a), that is the same unit
// with the sign of the z block of weights and biases turned.
// Backward of one step from g = dh' (reset after):
//   dn = g (1 - z) (1 - n^2)        at the tanh input
//   dz = g (h - n) z (1 - z)
//   dr = dn ah_n r (1 - r)
//   dai = [dr, dz, dn],  dah = [dr, dz, dn r],  dh = dah W_hh + g z
// and over all steps at once: dx = dai W_ih, dW_ih = dai^T x, dW_hh = dah^T h_prev, biases their column sums.

namespace gradus {
namespace reference {

Var gru_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const GruOptions& options) {
  At at(x.caller());
  int64_t H = h.size(-1);
  std::vector<Var> ai = split(linear(x, weight_ih, bias_ih), {H, H, H}, -1);
  Var r, n, z, seen = options.state_mask.defined() ? h * options.state_mask : h;
  if (options.reset_after) {
    std::vector<Var> ah = split(linear(seen, weight_hh, bias_hh), {H, H, H}, -1);
    r = sigmoid(ai[0] + ah[0]);
    z = sigmoid(ai[1] + ah[1]);
    n = tanh(ai[2] + r * ah[2]);
  } else {
    auto block = [&](const Var& w, int64_t k) {
      return w.defined() ? slice(w, 0, k * H, (k + 1) * H) : Var();
    };
    r = sigmoid(ai[0] + linear(seen, block(weight_hh, 0), block(bias_hh, 0)));
    z = sigmoid(ai[1] + linear(seen, block(weight_hh, 1), block(bias_hh, 1)));
    n = tanh(ai[2] + linear(r * seen, block(weight_hh, 2), block(bias_hh, 2)));
  }
  return options.update_selects_new ? z * n + (1.0 - z) * h : (1.0 - z) * n + z * h;
}

Var gru(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
        const Var& bias_hh, const GruOptions& options) {
  At at(x.caller());
  int64_t T = x.size(0), B = x.size(1), H = weight_hh.size(1);
  Var start = h0.defined() ? h0 : Var(Tensor::zeros({B, H}, x.dtype()));
  return over_time(T, start, options.reverse, options.lengths, [&](int64_t t, const Var& h) {
    return reference::gru_cell(select(x, 0, t), h, weight_ih, weight_hh, bias_ih, bias_hh, options);
  });
}

}  // namespace reference

namespace {

using kernels::gemm;
using kernels::PackedMatrix;

// The fused node for both layouts: x [T, B, I], or [B, I] for a single cell. Inside, rows are those of `real`: N of
// them, without padding, and B states sorted by length.
struct Gru {
  const char* op;
  RecurrentSizes size;
  bool reset_after, reverse;
  Tensor w_ih, w_hh, b_ih, b_hh;
  RealSteps real;
  Tensor x;                  // [N, I]
  Tensor before, gates, rh;  // [N, H] states that the steps start from; [N, 4H]; [N, H] (reset before)
  Tensor mask, seen;         // [B, H] factor on the state in the products, or undefined; [N, H] = mask before
  Shape input_shape;

  int64_t time(int64_t k) const { return reverse ? size.T - 1 - k : k; }
  template <class T>
  const T* optional(const Tensor& t) const {
    return t.defined() ? data<T>(t) : nullptr;
  }

  // out [T, B, H]
  template <class T>
  void forward(const Tensor& h0, T* out) {
    auto [steps, B, I, H] = size;
    int64_t N = real.total();
    Tensor gi = real.empty(3 * H, x.dtype()), gh({B, 3 * H}, x.dtype()), state = real.sort(h0).clone();
    gemm(false, true, N, 3 * H, I, T(1), data<T>(x), I, data<T>(w_ih), I, T(0), data<T>(gi), 3 * H);
    if (b_ih.defined()) kernels::add_bias(data<T>(b_ih), data<T>(gi), N, 3 * H);
    using Packed = PackedMatrix<T>;
    const typename Packed::Plan plan{B, steps};
    const T *w = data<T>(w_hh), *b = optional<T>(b_hh);
    // The recurrent weights meet every step: packed once. Reset before needs W_hn apart from W_h{r,z}.
    const Packed w_gates(Packed::Use::transposed, reset_after ? 3 * H : 2 * H, H, w, H, plan);
    const Packed w_n(Packed::Use::transposed, reset_after ? 0 : H, H, w + 2 * H * H, H, plan);
    T *h_new = data<T>(state), *gh_t = data<T>(gh);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = time(k), first = real.offset(t), n = real.count(t);
      const T* gi_t = data<T>(gi) + first * 3 * H;
      T *h = data<T>(before) + first * H, *gates_t = data<T>(gates) + first * 4 * H;
      std::copy_n(h_new, n * H, h);
      T* seen_t = data<T>(seen) + first * H;
      if (mask.defined())
        for (int64_t i = 0; i < n * H; ++i) seen_t[i] = data<T>(mask)[i] * h[i];
      w_gates.product(n, seen_t, H, false, gh_t, 3 * H);
      if (reset_after) {
        kernels::gru_reset_after(n, H, gi_t, gh_t, b, h, nullptr, h_new, gates_t);
      } else {
        T* rh_t = data<T>(rh) + first * H;
        kernels::gru_reset_before_gates(n, H, gi_t, gh_t, b, seen_t, gates_t, rh_t);
        w_n.product(n, rh_t, H, false, gh_t, H);
        kernels::gru_reset_before_state(n, H, gi_t, gh_t, b, h, nullptr, h_new, gates_t);
      }
      for (int64_t i = 0; i < B; ++i) std::copy_n(h_new + i * H, H, out + (t * B + real.sequence(i)) * H);
    }
  }

  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, I, H] = size;
    int64_t N = real.total();
    Tensor dgi = real.empty(3 * H, x.dtype()), dgh = reset_after ? real.empty(3 * H, x.dtype()) : dgi;
    Tensor dh = Tensor::zeros({B, H}, x.dtype()), drh({B, H}, x.dtype());
    Tensor of_seen = mask.defined() ? Tensor({B, H}, x.dtype()) : dh;
    using Packed = PackedMatrix<T>;
    const typename Packed::Plan plan{B, steps};
    const T* w = data<T>(w_hh);
    const Packed w_gates(Packed::Use::plain, H, reset_after ? 3 * H : 2 * H, w, H, plan);
    const Packed w_n(Packed::Use::plain, reset_after ? 0 : H, H, w + 2 * H * H, H, plan);
    for (int64_t k = steps; k-- > 0;) {
      int64_t t = time(k), first = real.offset(t), n = real.count(t);
      const T *h = data<T>(before) + first * H, *gates_t = data<T>(gates) + first * 4 * H;
      T *dgi_t = data<T>(dgi) + first * 3 * H, *dh_t = data<T>(dh);
      // A padded step hands its gradient on as it hands on the state: only the n real rows go through the unit.
      if (real.sorted()) kernels::add_into(data<T>(dout) + t * B * H, dh_t, B * H);
      else
        for (int64_t i = 0; i < B; ++i)
          kernels::add_into(data<T>(dout) + (t * B + real.sequence(i)) * H, dh_t + i * H, H);
      T* dseen = data<T>(of_seen);  // dh itself where there is no mask between the two
      if (mask.defined()) std::fill_n(dseen, n * H, T(0));
      if (reset_after) {
        T* dgh_t = data<T>(dgh) + first * 3 * H;
        kernels::gru_reset_after_backward(n, H, gates_t, h, dh_t, nullptr, dgi_t, dgh_t, dh_t);
        w_gates.product(n, dgh_t, 3 * H, true, dseen, H);
      } else {
        kernels::gru_reset_before_state_backward(n, H, gates_t, h, dh_t, nullptr, dgi_t, dh_t);
        w_n.product(n, dgi_t + 2 * H, 3 * H, false, data<T>(drh), H);
        kernels::gru_reset_before_gates_backward(n, H, gates_t, data<T>(seen) + first * H, data<T>(drh),
                                                 dgi_t, dseen);
        w_gates.product(n, dgi_t, 3 * H, true, dseen, H);
      }
      if (mask.defined())
        for (int64_t i = 0; i < n * H; ++i) dh_t[i] += data<T>(mask)[i] * dseen[i];
    }
    if (dx.needed(0)) {
      Tensor g = real.empty(I, x.dtype());
      gemm(false, false, N, I, 3 * H, T(1), data<T>(dgi), 3 * H, data<T>(w_ih), I, T(0), data<T>(g), I);
      dx.add(0, real.unpack(g, input_shape));
    }
    if (dx.needed(1)) dx.add(1, real.unsort(dh));
    if (dx.needed(2))
      gemm(true, false, 3 * H, I, N, T(1), data<T>(dgi), 3 * H, data<T>(x), I, T(1), data<T>(dx.into(2)), I);
    if (dx.needed(3)) {
      T* dw = data<T>(dx.into(3));
      gemm(true, false, reset_after ? 3 * H : 2 * H, H, N, T(1), data<T>(dgh), 3 * H, data<T>(seen), H, T(1),
           dw, H);
      if (!reset_after)
        gemm(true, false, H, H, N, T(1), data<T>(dgh) + 2 * H, 3 * H, data<T>(rh), H, T(1), dw + 2 * H * H,
             H);
    }
    if (dx.needed(4)) kernels::sum_rows_into(data<T>(dgi), data<T>(dx.into(4)), N, 3 * H);
    if (dx.needed(5)) kernels::sum_rows_into(data<T>(dgh), data<T>(dx.into(5)), N, 3 * H);
  }
};

// The z block (the second third of the rows) with the other sign; so is its gradient.   w [3H, ...] -> the same shape
Tensor negated_update(const Tensor& w) {
  Tensor out = w.clone();
  with_type(w.dtype(), "negate_update", [&](auto type) {
    using T = decltype(type);
    T* z = data<T>(out) + w.numel() / 3;
    for (int64_t i = 0, n = w.numel() / 3; i < n; ++i) z[i] = -z[i];
  });
  return out;
}

Var negate_update(const Var& w) {
  if (!w.defined()) return w;
  return record("negate_update", {w}, negated_update(w.value()),
                [](const Tensor& dy, Grads& dx) { dx.add(0, negated_update(dy)); });
}

Var run(const char* op, const Var& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
        const Var& bias_ih, const Var& bias_hh, const GruOptions& options) {
  RecurrentSizes s = check_recurrence(op, 3, x, h0, weight_ih, weight_hh, bias_ih, bias_hh, options.lengths);
  if (options.update_selects_new) {
    GruOptions rest = options;
    rest.update_selects_new = false;
    return run(op, x, h0, negate_update(weight_ih), negate_update(weight_hh), negate_update(bias_ih),
               negate_update(bias_hh), rest);
  }
  DType type = x.dtype();
  check_state(op, "state_mask", options.state_mask, s, type);
  RealSteps real(options.lengths, s.T, s.B);
  Tensor packed_x = real.pack(x.value());
  Gru gru{op,
          s,
          options.reset_after,
          options.reverse,
          weight_ih.value(),
          weight_hh.value(),
          bias_ih.value(),
          bias_hh.value(),
          real,
          packed_x,
          real.empty(s.H, type),
          real.empty(4 * s.H, type),
          options.reset_after ? Tensor() : real.empty(s.H, type),
          Tensor(),
          Tensor(),
          x.shape()};
  gru.seen = gru.before;
  if (options.state_mask.defined()) {
    gru.mask = gru.real.sort(options.state_mask);
    gru.seen = real.empty(s.H, type);
  }
  Tensor start = h0.defined() ? h0.value() : Tensor::zeros({s.B, s.H}, type);
  Tensor out(x.dims() == 2 ? Shape{s.B, s.H} : Shape{s.T, s.B, s.H}, type);
  with_type(type, op, [&](auto v) { gru.forward(start, data<decltype(v)>(out)); });
  return record(op, {x, h0, weight_ih, weight_hh, bias_ih, bias_hh}, out,
                [gru = std::move(gru)](const Tensor& dy, Grads& dx) {
                  with_type(dy.dtype(), gru.op, [&](auto v) { gru.backward<decltype(v)>(dy, dx); });
                });
}

}  // namespace

Var gru_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const GruOptions& options) {
  At at(x.caller());
  if (x.dims() != 2)
    fail("gru_cell", fmt::format("input must be [B, input_size]: input {}", x.shape().str()));
  return run("gru_cell", x, h, weight_ih, weight_hh, bias_ih, bias_hh, options);
}

Var gru(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
        const Var& bias_hh, const GruOptions& options) {
  At at(x.caller());
  if (x.dims() != 3) fail("gru", fmt::format("input must be [T, B, input_size]: input {}", x.shape().str()));
  return run("gru", x, h0, weight_ih, weight_hh, bias_ih, bias_hh, options);
}

// ---- cases: T = 4, B = 3, I = 2, H = 5 ----

namespace {

OpCase cell_case(const char* name, const GruOptions& options) {
  return {name,
          {{3, 2}, {3, 5}, {15, 2}, {15, 5}, {15}, {15}},
          [=](auto& in) { return gru_cell(in[0], in[1], in[2], in[3], in[4], in[5], options); },
          [=](auto& in) { return reference::gru_cell(in[0], in[1], in[2], in[3], in[4], in[5], options); }};
}

OpCase sequence_case(const char* name, const GruOptions& options) {
  return {name,
          {{4, 3, 2}, {3, 5}, {15, 2}, {15, 5}, {15}, {15}},
          [=](auto& in) { return gru(in[0], in[1], in[2], in[3], in[4], in[5], options); },
          [=](auto& in) { return reference::gru(in[0], in[1], in[2], in[3], in[4], in[5], options); }};
}

// With a mask on the state, as dropout with p = 1/2 makes one; in the element type of x.
OpCase masked_case(const char* name, const GruOptions& options) {
  auto masked = [=](const Var& x) {
    GruOptions with = options;
    with.state_mask = Tensor::from({3, 5}, {2, 0, 2, 2, 0, 0, 0, 2, 0, 2, 2, 2, 0, 2, 0}, x.dtype());
    return with;
  };
  return {name,
          {{4, 3, 2}, {3, 5}, {15, 2}, {15, 5}, {15}, {15}},
          [=](auto& in) { return gru(in[0], in[1], in[2], in[3], in[4], in[5], masked(in[0])); },
          [=](auto& in) { return reference::gru(in[0], in[1], in[2], in[3], in[4], in[5], masked(in[0])); }};
}

Tensor some_lengths() { return Tensor::from_ids({3}, {4, 0, 2}); }

}  // namespace

GRADUS_OP_CASES(cell_case("gru_cell", {}), cell_case("gru_cell: reset before", {.reset_after = false}),
                sequence_case("gru", {}), sequence_case("gru: reverse", {.reverse = true}),
                sequence_case("gru: lengths", {.lengths = some_lengths()}),
                sequence_case("gru: sorted lengths", {.lengths = Tensor::from_ids({3}, {3, 2, 1})}),
                sequence_case("gru: reverse, sorted lengths",
                              {.reverse = true, .lengths = Tensor::from_ids({3}, {3, 2, 1})}),
                sequence_case("gru: nothing but padding", {.lengths = Tensor::from_ids({3}, {0, 0, 0})}),
                sequence_case("gru: reverse, lengths", {.reverse = true, .lengths = some_lengths()}),
                sequence_case("gru: reset before", {.reset_after = false}),
                sequence_case("gru: reset before, reverse, lengths",
                              {.reset_after = false, .reverse = true, .lengths = some_lengths()}),
                masked_case("gru: state mask", {}),
                masked_case("gru: state mask, reverse, lengths", {.reverse = true, .lengths = some_lengths()}),
                masked_case("gru: state mask, reset before, lengths",
                            {.reset_after = false, .lengths = some_lengths()}),
                cell_case("gru_cell: Bahdanau", {.reset_after = false, .update_selects_new = true}),
                sequence_case("gru: Bahdanau, reverse, lengths",
                              {.reset_after = false, .update_selects_new = true, .reverse = true,
                               .lengths = some_lengths()}),
                {"gru: no biases, no initial state",
                 {{4, 3, 2}, {15, 2}, {15, 5}},
                 [](auto& in) { return gru(in[0], {}, in[1], in[2], {}, {}); },
                 [](auto& in) { return reference::gru(in[0], {}, in[1], in[2], {}, {}); }});

}  // namespace gradus
