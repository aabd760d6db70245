#include <gradus/ops/gru.h>

#include <fmt/core.h>

#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/gemm.h>
#include <gradus/kernels/gru.h>
#include <gradus/kernels/packed_gemm.h>
#include <gradus/numeric.h>
#include <gradus/op_case.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/shape.h>

// GRU (Cho et al. 2014), gates stacked r, z, n.
//   ai = W_ih x + b_ih,  ah = W_hh h + b_hh
//   r = s(ai_r + ah_r),  z = s(ai_z + ah_z),  h' = (1 - z) n + z h
//   reset after:  n = tanh(ai_n + r ah_n)
//   reset before: n = tanh(ai_n + W_hn (r h) + b_hn)
// Backward of one step from g = dh' (reset after):
//   dn = g (1 - z) (1 - n^2)        at the tanh input
//   dz = g (h - n) z (1 - z)
//   dr = dn ah_n r (1 - r)
//   dai = [dr, dz, dn],  dah = [dr, dz, dn r],  dh = dah W_hh + g z
// and over all steps at once: dx = dai W_ih, dW_ih = dai^T x, dW_hh = dah^T h_prev, biases their column sums.

namespace gradus {
namespace reference {

Var gru_cell(const Var& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const GruOptions& options) {
  int64_t H = h.size(-1);
  std::vector<Var> ai = split(linear(x, weight_ih, bias_ih), {H, H, H}, -1);
  Var r, n, z;
  if (options.reset_after) {
    std::vector<Var> ah = split(linear(h, weight_hh, bias_hh), {H, H, H}, -1);
    r = sigmoid(ai[0] + ah[0]);
    z = sigmoid(ai[1] + ah[1]);
    n = tanh(ai[2] + r * ah[2]);
  } else {
    auto block = [&](const Var& w, int64_t k) { return w.defined() ? slice(w, 0, k * H, (k + 1) * H) : Var(); };
    r = sigmoid(ai[0] + linear(h, block(weight_hh, 0), block(bias_hh, 0)));
    z = sigmoid(ai[1] + linear(h, block(weight_hh, 1), block(bias_hh, 1)));
    n = tanh(ai[2] + linear(r * h, block(weight_hh, 2), block(bias_hh, 2)));
  }
  return (1.0 - z) * n + z * h;
}

Var gru(const Var& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih, const Var& bias_hh,
        const GruOptions& options) {
  int64_t T = x.size(0), B = x.size(1), H = weight_hh.size(1);
  Var h = h0.defined() ? h0 : Var(Tensor::zeros({B, H}, x.dtype()));
  std::vector<Var> states(static_cast<size_t>(T));
  for (int64_t k = 0; k < T; ++k) {
    int64_t t = options.reverse ? T - 1 - k : k;
    Var next = reference::gru_cell(select(x, 0, t), h, weight_ih, weight_hh, bias_ih, bias_hh, options);
    if (options.lengths.defined()) {
      Tensor real({B, 1}, DType::u8);
      for (int64_t b = 0; b < B; ++b) real.u8()[b] = t < options.lengths.i32()[b];
      next = where(real, next, h);
    }
    states[static_cast<size_t>(t)] = h = next;
  }
  return stack(states, 0);
}

}  // namespace reference

namespace {

using kernels::gemm;
using kernels::PackedMatrix;

struct Sizes {
  int64_t T, B, I, H;
};

Sizes check(const char* op, const Var& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
            const Var& bias_hh, const Tensor& lengths) {
  bool cell = x.dims() == 2;
  if (x.dims() != 2 && x.dims() != 3)
    fail(op, fmt::format("input must be [T, B, input_size]: input {}", x.shape().str()));
  Sizes s{cell ? 1 : x.size(0), x.size(-2), x.size(-1), weight_hh.dims() == 2 ? weight_hh.size(1) : 0};
  if (weight_ih.dims() != 2 || weight_ih.size(1) != s.I || weight_ih.size(0) != 3 * s.H)
    fail(op, fmt::format("weight_ih must be [3 hidden_size, input_size]: input {}, weight_ih {}, weight_hh {}",
                         x.shape().str(), weight_ih.shape().str(), weight_hh.shape().str()));
  if (weight_hh.shape() != Shape{3 * s.H, s.H})
    fail(op, fmt::format("weight_hh must be [3 hidden_size, hidden_size]: weight_hh {}", weight_hh.shape().str()));
  if (h.defined() && h.shape() != Shape{s.B, s.H})
    fail(op, fmt::format("the initial state must be [B, hidden_size] = [{}, {}]: state {}", s.B, s.H, h.shape().str()));
  for (const Var* bias : {&bias_ih, &bias_hh})
    if (bias->defined() && bias->shape() != Shape{3 * s.H})
      fail(op, fmt::format("a bias must be [3 hidden_size] = [{}]: bias {}", 3 * s.H, bias->shape().str()));
  for (const Var* v : {&h, &weight_ih, &weight_hh, &bias_ih, &bias_hh})
    if (v->defined() && v->dtype() != x.dtype())
      fail(op, fmt::format("element types must agree: {} and {}", name_of(x.dtype()), name_of(v->dtype())));
  if (lengths.defined()) {
    if (lengths.dtype() != DType::i32 || lengths.shape() != Shape{s.B})
      fail(op, fmt::format("lengths must be i32 [B] = [{}]: {} {}", s.B, name_of(lengths.dtype()), lengths.shape().str()));
    for (int64_t b = 0; b < s.B; ++b)
      if (lengths.i32()[b] < 0 || lengths.i32()[b] > s.T)
        fail(op, fmt::format("lengths must be in 0 .. T = {}: {}", s.T, lengths.i32()[b]));
  }
  return s;
}

// The fused node for both layouts: x [T, B, I], or [B, I] for a single cell.
struct Gru {
  const char* op;
  Sizes size;
  bool reset_after, reverse;
  Tensor x, h0, w_ih, w_hh, b_ih, b_hh, active;  // active u8 [T, B], undefined when all steps are real
  Tensor out, gates, rh;                         // out [T, B, H], gates [T, B, 4H], rh [T, B, H] (reset before)

  int64_t time(int64_t k) const { return reverse ? size.T - 1 - k : k; }
  const uint8_t* active_at(int64_t t) const { return active.defined() ? active.u8() + t * size.B : nullptr; }
  template <class T>
  const T* optional(const Tensor& t) const {
    return t.defined() ? data<T>(t) : nullptr;
  }
  // The state that step k starts from.
  template <class T>
  const T* before(int64_t k) const {
    return k == 0 ? data<T>(h0) : data<T>(out) + time(k - 1) * size.B * size.H;
  }

  template <class T>
  void forward() {
    auto [steps, B, I, H] = size;
    Tensor gi({steps, B, 3 * H}, x.dtype()), gh({B, 3 * H}, x.dtype());
    gemm(false, true, steps * B, 3 * H, I, T(1), data<T>(x), I, data<T>(w_ih), I, T(0), data<T>(gi), 3 * H);
    if (b_ih.defined()) kernels::add_bias(data<T>(b_ih), data<T>(gi), steps * B, 3 * H);
    using Packed = PackedMatrix<T>;
    const typename Packed::Plan plan{B, steps};
    const T* w = data<T>(w_hh);
    // The recurrent weights meet every step: packed once. Reset before needs W_hn apart from W_h{r,z}.
    const Packed w_gates(Packed::Use::transposed, reset_after ? 3 * H : 2 * H, H, w, H, plan);
    const Packed w_n(Packed::Use::transposed, reset_after ? 0 : H, H, w + 2 * H * H, H, plan);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = time(k);
      const T *h = before<T>(k), *gi_t = data<T>(gi) + t * B * 3 * H, *b = optional<T>(b_hh);
      T *h_new = data<T>(out) + t * B * H, *gates_t = data<T>(gates) + t * B * 4 * H, *gh_t = data<T>(gh);
      if (reset_after) {
        w_gates.product(B, h, H, false, gh_t, 3 * H);
        kernels::gru_reset_after(B, H, gi_t, gh_t, b, h, active_at(t), h_new, gates_t);
      } else {
        T* rh_t = data<T>(rh) + t * B * H;
        w_gates.product(B, h, H, false, gh_t, 3 * H);
        kernels::gru_reset_before_gates(B, H, gi_t, gh_t, b, h, gates_t, rh_t);
        w_n.product(B, rh_t, H, false, gh_t, H);
        kernels::gru_reset_before_state(B, H, gi_t, gh_t, b, h, active_at(t), h_new, gates_t);
      }
    }
  }

  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, I, H] = size;
    Tensor dgi({steps, B, 3 * H}, x.dtype());
    Tensor dgh = reset_after ? Tensor({steps, B, 3 * H}, x.dtype()) : dgi;
    Tensor dh = Tensor::zeros({B, H}, x.dtype()), drh({B, H}, x.dtype());
    using Packed = PackedMatrix<T>;
    const typename Packed::Plan plan{B, steps};
    const T* w = data<T>(w_hh);
    const Packed w_gates(Packed::Use::plain, H, reset_after ? 3 * H : 2 * H, w, H, plan);
    const Packed w_n(Packed::Use::plain, reset_after ? 0 : H, H, w + 2 * H * H, H, plan);
    for (int64_t k = steps; k-- > 0;) {
      int64_t t = time(k);
      const T *h = before<T>(k), *gates_t = data<T>(gates) + t * B * 4 * H;
      T *dgi_t = data<T>(dgi) + t * B * 3 * H, *dh_t = data<T>(dh);
      kernels::add_into(data<T>(dout) + t * B * H, dh_t, B * H);
      if (reset_after) {
        T* dgh_t = data<T>(dgh) + t * B * 3 * H;
        kernels::gru_reset_after_backward(B, H, gates_t, h, dh_t, active_at(t), dgi_t, dgh_t, dh_t);
        w_gates.product(B, dgh_t, 3 * H, true, dh_t, H);
      } else {
        kernels::gru_reset_before_state_backward(B, H, gates_t, h, dh_t, active_at(t), dgi_t, dh_t);
        w_n.product(B, dgi_t + 2 * H, 3 * H, false, data<T>(drh), H);
        kernels::gru_reset_before_gates_backward(B, H, gates_t, h, data<T>(drh), dgi_t, dh_t);
        w_gates.product(B, dgi_t, 3 * H, true, dh_t, H);
      }
    }
    if (dx.needed(0)) {
      Tensor g(x.shape(), x.dtype());
      gemm(false, false, steps * B, I, 3 * H, T(1), data<T>(dgi), 3 * H, data<T>(w_ih), I, T(0), data<T>(g), I);
      dx.add(0, g);
    }
    if (dx.needed(1)) dx.add(1, dh);
    if (dx.needed(2))
      gemm(true, false, 3 * H, I, steps * B, T(1), data<T>(dgi), 3 * H, data<T>(x), I, T(1), data<T>(dx.into(2)), I);
    if (dx.needed(3)) recurrent_weight<T>(dgh, data<T>(dx.into(3)));
    if (dx.needed(4)) kernels::sum_rows_into(data<T>(dgi), data<T>(dx.into(4)), steps * B, 3 * H);
    if (dx.needed(5)) kernels::sum_rows_into(data<T>(dgh), data<T>(dx.into(5)), steps * B, 3 * H);
  }

  // dW_hh += sum over steps of dgh_t^T h_before(t): the states before all steps but the first stand in `out` in one
  // block, shifted by one step against dgh.
  template <class T>
  void recurrent_weight(const Tensor& dgh, T* dw) const {
    auto [steps, B, I, H] = size;
    int64_t first = time(0), rest = (steps - 1) * B;
    const T* g = data<T>(dgh);
    const T* g_rest = reverse ? g : g + B * 3 * H;
    const T* h_rest = reverse ? data<T>(out) + B * H : data<T>(out);
    int64_t columns = reset_after ? 3 * H : 2 * H;
    if (rest > 0) gemm(true, false, columns, H, rest, T(1), g_rest, 3 * H, h_rest, H, T(1), dw, H);
    gemm(true, false, columns, H, B, T(1), g + first * B * 3 * H, 3 * H, data<T>(h0), H, T(1), dw, H);
    if (!reset_after)
      gemm(true, false, H, H, steps * B, T(1), g + 2 * H, 3 * H, data<T>(rh), H, T(1), dw + 2 * H * H, H);
  }
};

Var run(const char* op, const Var& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
        const Var& bias_hh, const GruOptions& options) {
  Sizes s = check(op, x, h0, weight_ih, weight_hh, bias_ih, bias_hh, options.lengths);
  DType type = x.dtype();
  Gru gru{op,
          s,
          options.reset_after,
          options.reverse,
          x.value(),
          h0.defined() ? h0.value() : Tensor::zeros({s.B, s.H}, type),
          weight_ih.value(),
          weight_hh.value(),
          bias_ih.value(),
          bias_hh.value(),
          Tensor(),
          Tensor(x.dims() == 2 ? Shape{s.B, s.H} : Shape{s.T, s.B, s.H}, type),
          Tensor({s.T, s.B, 4 * s.H}, type),
          options.reset_after ? Tensor() : Tensor({s.T, s.B, s.H}, type)};
  if (options.lengths.defined()) {
    gru.active = Tensor({s.T, s.B}, DType::u8);
    for (int64_t t = 0; t < s.T; ++t)
      for (int64_t b = 0; b < s.B; ++b) gru.active.u8()[t * s.B + b] = t < options.lengths.i32()[b];
  }
  with_type(type, op, [&](auto v) { gru.forward<decltype(v)>(); });
  Tensor out = gru.out;
  return record(op, {x, h0, weight_ih, weight_hh, bias_ih, bias_hh}, out,
                [gru = std::move(gru)](const Tensor& dy, Grads& dx) {
                  with_type(dy.dtype(), gru.op, [&](auto v) { gru.backward<decltype(v)>(dy, dx); });
                });
}

}  // namespace

Var gru_cell(const Var& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const GruOptions& options) {
  if (x.dims() != 2) fail("gru_cell", fmt::format("input must be [B, input_size]: input {}", x.shape().str()));
  return run("gru_cell", x, h, weight_ih, weight_hh, bias_ih, bias_hh, options);
}

Var gru(const Var& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih, const Var& bias_hh,
        const GruOptions& options) {
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

Tensor some_lengths() { return Tensor::from_ids({3}, {4, 0, 2}); }

}  // namespace

GRADUS_OP_CASES(cell_case("gru_cell", {}), cell_case("gru_cell: reset before", {.reset_after = false}),
                sequence_case("gru", {}), sequence_case("gru: reverse", {.reverse = true}),
                sequence_case("gru: lengths", {.lengths = some_lengths()}),
                sequence_case("gru: reverse, lengths", {.reverse = true, .lengths = some_lengths()}),
                sequence_case("gru: reset before", {.reset_after = false}),
                sequence_case("gru: reset before, reverse, lengths",
                              {.reset_after = false, .reverse = true, .lengths = some_lengths()}),
                {"gru: no biases, no initial state",
                 {{4, 3, 2}, {15, 2}, {15, 5}},
                 [](auto& in) { return gru(in[0], {}, in[1], in[2], {}, {}); },
                 [](auto& in) { return reference::gru(in[0], {}, in[1], in[2], {}, {}); }});

}  // namespace gradus
