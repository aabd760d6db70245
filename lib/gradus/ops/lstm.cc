#include <gradus/ops/lstm.h>

#include <algorithm>

#include <gradus/kernels/recurrent.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/recurrent_cases.h>
#include <gradus/ops/recurrent_norm.h>
#include <gradus/ops/shape.h>

// LSTM (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000), gates stacked i, f, g, o. With norms
// (Ba et al. 2016, supplement, equations 20 to 22) both halves of the gates' summed inputs are normalised, and
// the cell on its way out; without them N is the identity.   x [T, B, I] -> h [T, B, H]
//   1. p = W_ih x + b_ih + b_hh, pre = N_ih(p)      over all real steps at once, N over the 4H
//   2. q_t = W_hh (m h_{t-1}), pre_t += N_hh(q_t)   step by step, as what follows
//   3. i, f, o = s(pre_t), g = tanh(pre_t), c_t = f c_{t-1} + i g
//   4. y_t = N_c(c_t), h_t = o tanh(y_t)            the cell that is carried over is not normalised
// Backward, newest step first, dh and dc with what came from step t+1; N' is N's backward (layer_norm.h):
//   4. dc += N_c'(dh o (1 - tanh^2(y_t))),   dpre_o = dh tanh(y_t) o (1 - o)
//   3. dpre_i, dpre_f, dpre_g = dc g i (1 - i), dc c_{t-1} f (1 - f), dc i (1 - g^2),   dc_{t-1} = dc f
//   2. dq_t = N_hh'(dpre_t),   dh_{t-1} = m (dq_t W_hh)
//   1. dp = N_ih'(dpre), and over all steps at once
//      dx = dp W_ih, dW_ih = dp^T x, dW_hh = dq^T (m h_prev), biases the column sums of dp
//
// A node has one output, all h and, one row further, the last c, [T + 1, B, H]; people get slices: views.

namespace gradus {
namespace reference {

LstmState lstm_cell(const Input& x, const LstmState& state, const RecurrentWeights& w,
                    const LstmOptions& options) {
  At at(x.caller());
  int64_t H = state.h.size(-1);
  Var seen = options.state_mask.defined() ? state.h * options.state_mask : state.h;
  Var pre =
      normalise(linear(x, w.ih, w.bias_ih), w.norm_ih) + normalise(linear(seen, w.hh, w.bias_hh), w.norm_hh);
  std::vector<Var> a = split(pre, {H, H, H, H}, -1);
  Var c = sigmoid(a[1]) * state.c + sigmoid(a[0]) * tanh(a[2]);
  return {sigmoid(a[3]) * tanh(normalise(c, w.norm_c)), c};
}

LstmStates lstm(const Input& x, const LstmState& start, const RecurrentWeights& w,
                const LstmOptions& options) {
  At at(x.caller());
  int64_t T = x.size(0), H = w.hh.size(1);
  Var zeros = Tensor::zeros({x.size(1), H}, x.dtype());
  Var both = concat({start.h.defined() ? start.h : zeros, start.c.defined() ? start.c : zeros}, -1);
  Var all = over_time(T, both, options.reverse, options.lengths, [&](int64_t t, const Var& state) {
    std::vector<Var> parts = split(state, {H, H}, -1);
    LstmState next = reference::lstm_cell(select(x, 0, t), {parts[0], parts[1]}, w, options);
    return concat({next.h, next.c}, -1);
  });
  std::vector<Var> parts = split(all, {H, H}, -1);
  return {parts[0], select(parts[1], 0, options.reverse ? 0 : T - 1)};
}

}  // namespace reference

namespace {

// First cell, norms (weight, bias) among the node's inputs.
enum { kC0 = 6, kLstmIh = 7, kLstmHh = 9, kLstmC = 11 };

struct Lstm : Recurrence {
  RowNorm norm_ih{}, norm_hh{}, norm_c{};
  Tensor c0{};                                     // [B, H] sorted
  Tensor units = real.empty(4 * size.H, dtype());  // i, f, g, o
  Tensor c_before = real.empty(size.H, dtype());
  Tensor p = units, q = units;  // [N, 4H] both products, where they are normalised; else added up in `units`
  Tensor c{}, tanh_y{};         // [N, H] likewise

  // out [T + 1, B, H]
  template <class T>
  void forward(T* out) {
    auto [steps, B, I, H] = size;
    const int64_t W = 4 * H;
    const bool normed = static_cast<bool>(norm_c);
    project(data<T>(p), b_hh);  // 1
    norm_ih.forward(0, real.total(), data<T>(p), W, false, data<T>(units), W);
    Tensor h = h0.clone(), cell = c0.clone();
    auto w = packed<T>(Use<T>::transposed, 0, gates);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = time(k), first = real.offset(t), n = real.count(t);
      T *q_t = data<T>(q) + first * W, *units_t = data<T>(units) + first * W,
        *old = data<T>(c_before) + first * H;
      w.product(n, see(t, data<T>(h)), H, !normed, q_t, W);  // 2
      norm_hh.forward(first, n, q_t, W, true, units_t, W);
      std::copy_n(data<T>(cell), n * H, old);
      if (normed) {
        T *c_t = data<T>(c) + first * H, *y_t = data<T>(tanh_y) + first * H;
        kernels::lstm_step<T>(n, H, units_t, old, nullptr, c_t);  // 3
        std::copy_n(c_t, n * H, data<T>(cell));
        norm_c.forward(first, n, c_t, H, false, y_t, H);  // 4
        kernels::lstm_output(n, H, units_t, y_t, data<T>(h));
      } else {
        kernels::lstm_step(n, H, units_t, old, data<T>(h), data<T>(cell));  // 3 and 4
      }
      put(data<T>(h), out + t * B * H);
    }
    put(data<T>(cell), out + steps * B * H);
  }

  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, I, H] = size;
    const int64_t W = 4 * H;
    const bool normed = static_cast<bool>(norm_c);
    Tensor dpre = real.empty(W, dtype()), dq = normed ? real.empty(W, dtype()) : dpre;
    Tensor dh = Tensor::zeros({B, H}, dtype()), dc = real.sort(dout.row(steps)).clone();
    Tensor scratch({B, H}, dtype()), dy = normed ? Tensor({B, H}, dtype()) : Tensor();
    NormGradients of_ih(normed, dx, kLstmIh, W, dtype()), of_hh(normed, dx, kLstmHh, W, dtype());
    NormGradients of_c(normed, dx, kLstmC, H, dtype());
    {  // the packed weights go before the gradients of the weights come
      auto w = packed<T>(Use<T>::plain, 0, gates);
      T *g = data<T>(dh), *dcell = data<T>(dc);
      for (int64_t k = steps; k-- > 0;) {
        int64_t t = time(k), first = real.offset(t), n = real.count(t);
        const T *units_t = data<T>(units) + first * W, *old = data<T>(c_before) + first * H;
        T *dpre_t = data<T>(dpre) + first * W, *dq_t = data<T>(dq) + first * W;
        take(data<T>(dout) + t * B * H, g);
        if (normed) {
          T* dy_t = data<T>(dy);
          kernels::lstm_output_backward(n, H, units_t, data<T>(tanh_y) + first * H, g, dpre_t, dy_t);  // 4
          norm_c.backward(first, n, data<T>(c) + first * H, H, dy_t, H, true, dcell, H, of_c);
          kernels::lstm_step_backward<T>(n, H, units_t, old, nullptr, dcell, dpre_t);  // 3
        } else {
          kernels::lstm_step_backward(n, H, units_t, old, g, dcell, dpre_t);  // 4 and 3
        }
        norm_hh.backward(first, n, data<T>(q) + first * W, W, dpre_t, W, false, dq_t, W, of_hh);  // 2
        recur_back(w, t, dq_t, data<T>(scratch), g);
      }
    }
    norm_ih.backward(0, real.total(), data<T>(p), W, data<T>(dpre), W, false, data<T>(dpre), W, of_ih);  // 1
    finish<T>(dpre, dq, dh, dx);
    if (dx.needed(kC0)) dx.add(kC0, real.unsort(dc));
  }
};

// [T + 1, B, H]
Var run(const char* op, int dims, const Var& x, const LstmState& start, const RecurrentWeights& w,
        const LstmOptions& o) {
  Lstm lstm{make_recurrence(op, 4, dims, x, start.h, w, o.reverse, o.lengths, o.state_mask)};
  auto [steps, B, I, H] = lstm.size;
  DType type = x.dtype();
  check_state(op, "the initial cell", start.c, lstm.size, type);
  std::vector<Var> inputs = recurrent_inputs(op, x, {start.h, start.c}, w, {.ih = 4, .hh = 4, .c = 1});
  lstm.c0 = start.c.defined() ? lstm.real.sort(start.c.value()) : Tensor::zeros({B, H}, type);
  if (w.normalised()) {
    lstm.norm_ih = RowNorm(w.norm_ih, 0, 4 * H, lstm.real);
    lstm.norm_hh = RowNorm(w.norm_hh, 0, 4 * H, lstm.real);
    lstm.norm_c = RowNorm(w.norm_c, 0, H, lstm.real);
    for (Tensor* wide : {&lstm.p, &lstm.q}) *wide = lstm.real.empty(4 * H, type);
    for (Tensor* narrow : {&lstm.c, &lstm.tanh_y}) *narrow = lstm.real.empty(H, type);
  }
  Tensor out({steps + 1, B, H}, type);
  return record_unit(op, std::move(lstm), inputs, out);
}

}  // namespace

LstmState lstm_cell(const Input& x, const LstmState& state, const RecurrentWeights& w,
                    const LstmOptions& options) {
  At at(x.caller());
  Var both = run(w.normalised() ? "layer_norm_lstm_cell" : "lstm_cell", 2, x, state, w, options);
  return {select(both, 0, 0), select(both, 0, 1)};
}

LstmStates lstm(const Input& x, const LstmState& start, const RecurrentWeights& w,
                const LstmOptions& options) {
  At at(x.caller());
  Var all = run(w.normalised() ? "layer_norm_lstm" : "lstm", 3, x, start, w, options);
  return {slice(all, 0, 0, x.size(0)), select(all, 0, x.size(0))};
}

// ---- cases: T = 4, B = 3, I = 2, H = 5 ----

namespace {

using Inputs = std::vector<Var>;

// Both results side by side, so that the checks see both.
OpCase cell_case(const std::string& name, int norms) {
  auto with = [=](auto cell) {
    return [=](const Inputs& in) {
      LstmState y = cell(in[0], LstmState{in[1], in[2]}, cases::weights_from(in, 3, norms), LstmOptions{});
      return concat({y.h, y.c}, -1);
    };
  };
  return {name, cases::inputs_of({3, 2}, 2, 20, norms), with(lstm_cell), with(reference::lstm_cell)};
}

OpCase sequence_case(const std::string& name, const LstmOptions& options, int norms) {
  auto with = [=](auto over_time) {
    return [=](const Inputs& in) {
      LstmStates y = over_time(in[0], LstmState{in[1], in[2]}, cases::weights_from(in, 3, norms),
                               cases::in_type_of(in[0], options));
      return concat({y.h, stack({y.c_n}, 0)}, 0);
    };
  };
  return {name, cases::inputs_of({4, 3, 2}, 2, 20, norms), with(lstm), with(reference::lstm)};
}

// No biases, offsets and initial state, and one of the results alone.
OpCase bare_case(const char* name, const std::vector<OpCase::Input>& inputs, Var LstmStates::*result) {
  auto with = [=](auto over_time) {
    return [=](const Inputs& in) { return over_time(in[0], {}, cases::bare_weights(in), {}).*result; };
  };
  return {name, inputs, with(lstm), with(reference::lstm)};
}

}  // namespace

GRADUS_OP_CASES(cases::over_time("lstm", sequence_case, 0));
GRADUS_OP_CASES(cases::over_time("layer_norm_lstm", sequence_case, 3));
GRADUS_OP_CASES(cell_case("lstm_cell", 0), cell_case("layer_norm_lstm_cell", 3),
                bare_case("lstm: no biases, no initial state, only h used", {{4, 3, 2}, {20, 2}, {20, 5}},
                          &LstmStates::h),
                bare_case("lstm: only the last cell used", {{4, 3, 2}, {20, 2}, {20, 5}}, &LstmStates::c_n),
                bare_case("layer_norm_lstm: no offsets, no initial state, only h used",
                          {{4, 3, 2}, {20, 2}, {20, 5}, {20}, {20}, {5}}, &LstmStates::h));

}  // namespace gradus
