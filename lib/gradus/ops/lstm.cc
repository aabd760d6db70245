#include <gradus/ops/lstm.h>

#include <algorithm>

#include <gradus/kernels/lstm.h>
#include <gradus/op_case.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/recurrence.h>
#include <gradus/ops/shape.h>

// LSTM (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000), gates stacked i, f, g, o.
//   1. pre_t = W_ih x_t + b_ih + b_hh        one product over all real steps, written where the gates will stand
//   2. pre_t += W_hh (m h_{t-1})             step by step
//   3. i, f, o = s(pre), g = tanh(pre), c_t = f c_{t-1} + i g, h_t = o tanh(c_t)
// Backward, newest step first, dh and dc with what came from step t+1:
//   3. dc += dh o (1 - tanh^2(c_t))
//      dpre_t = [dc g i (1 - i), dc c_{t-1} f (1 - f), dc i (1 - g^2), dh tanh(c_t) o (1 - o)],   dc_{t-1} = dc f
//   2. dh_{t-1} = m (dpre_t W_hh)
//   1. dx = dpre W_ih, dW_ih = dpre^T x, dW_hh = dpre^T (m h_prev), biases the column sums, over all steps at once
//
// A node has one output: all h and, one row further, the last c, [T + 1, B, H]; slices of it, which are views, are what
// people get.

namespace gradus {
namespace reference {

LstmState lstm_cell(const Input& x, const LstmState& state, const Var& weight_ih, const Var& weight_hh,
                    const Var& bias_ih, const Var& bias_hh, const LstmOptions& options) {
  At at(x.caller());
  int64_t H = state.h.size(-1);
  Var seen = options.state_mask.defined() ? state.h * options.state_mask : state.h;
  std::vector<Var> a =
      split(linear(x, weight_ih, bias_ih) + linear(seen, weight_hh, bias_hh), {H, H, H, H}, -1);
  Var c = sigmoid(a[1]) * state.c + sigmoid(a[0]) * tanh(a[2]);
  return {sigmoid(a[3]) * tanh(c), c};
}

LstmStates lstm(const Input& x, const LstmState& start, const Var& weight_ih, const Var& weight_hh,
                const Var& bias_ih, const Var& bias_hh, const LstmOptions& options) {
  At at(x.caller());
  return lstm_over_time(x, start, weight_hh.size(1), options, [&](const Var& x_t, const LstmState& state) {
    return reference::lstm_cell(x_t, state, weight_ih, weight_hh, bias_ih, bias_hh, options);
  });
}

}  // namespace reference

namespace {

// Beside Recurrence's six inputs: c0, the seventh.
struct Lstm : Recurrence {
  Tensor c0{};        // [B, H] sorted
  Tensor c_before{};  // [N, H]
  Tensor all{};       // [N, 4H] the gates

  // out [T + 1, B, H]
  template <class T>
  void forward(T* out) {
    auto [steps, B, I, H] = size;
    project(data<T>(all), b_hh);
    Tensor h = h0.clone(), c = c0.clone();
    auto w = packed<T>(Use<T>::transposed);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = time(k), first = real.offset(t), n = real.count(t);
      T *gates_t = data<T>(all) + first * 4 * H, *old = data<T>(c_before) + first * H;
      w.product(n, see(t, data<T>(h)), H, true, gates_t, 4 * H);
      std::copy_n(data<T>(c), n * H, old);
      kernels::lstm_step(n, H, gates_t, old, data<T>(h), data<T>(c));
      put(data<T>(h), out + t * B * H);
    }
    put(data<T>(c), out + steps * B * H);
  }

  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, I, H] = size;
    Tensor dpre = real.empty(4 * H, dtype()), dh = Tensor::zeros({B, H}, dtype()), scratch({B, H}, dtype());
    Tensor dc = real.sort(dout.row(steps)).clone();
    {  // the packed weights go before the gradients of the weights come
      auto w = packed<T>(Use<T>::plain);
      for (int64_t k = steps; k-- > 0;) {
        int64_t t = time(k), first = real.offset(t);
        T *g = data<T>(dh), *dpre_t = data<T>(dpre) + first * 4 * H;
        take(data<T>(dout) + t * B * H, g);
        kernels::lstm_step_backward(real.count(t), H, data<T>(all) + first * 4 * H,
                                    data<T>(c_before) + first * H, g, data<T>(dc), dpre_t);
        recur_back(w, t, dpre_t, data<T>(scratch), g);
      }
    }
    finish<T>(dpre, dpre, dh, dx);
    if (dx.needed(6)) dx.add(6, real.unsort(dc));
  }
};

// [T + 1, B, H]
Var run(const char* op, const Var& x, const LstmState& start, const Var& weight_ih, const Var& weight_hh,
        const Var& bias_ih, const Var& bias_hh, const LstmOptions& o) {
  Lstm lstm{make_recurrence(op, 4, x, start.h, weight_ih, weight_hh, bias_ih, bias_hh, o.reverse, o.lengths,
                            o.state_mask)};
  auto [steps, B, I, H] = lstm.size;
  check_state(op, "the initial cell", start.c, lstm.size, x.dtype());
  lstm.c0 = start.c.defined() ? lstm.real.sort(start.c.value()) : Tensor::zeros({B, H}, x.dtype());
  lstm.c_before = lstm.real.empty(H, x.dtype());
  lstm.all = lstm.real.empty(4 * H, x.dtype());
  Tensor out({steps + 1, B, H}, x.dtype());
  return record_recurrence(op, std::move(lstm), {x, start.h, weight_ih, weight_hh, bias_ih, bias_hh, start.c},
                           out);
}

}  // namespace

LstmState lstm_cell(const Input& x, const LstmState& state, const Var& weight_ih, const Var& weight_hh,
                    const Var& bias_ih, const Var& bias_hh, const LstmOptions& options) {
  At at(x.caller());
  check_cell_input("lstm_cell", x);
  Var both = run("lstm_cell", x, state, weight_ih, weight_hh, bias_ih, bias_hh, options);
  return {select(both, 0, 0), select(both, 0, 1)};
}

LstmStates lstm(const Input& x, const LstmState& start, const Var& weight_ih, const Var& weight_hh,
                const Var& bias_ih, const Var& bias_hh, const LstmOptions& options) {
  At at(x.caller());
  check_sequence("lstm", x);
  Var all = run("lstm", x, start, weight_ih, weight_hh, bias_ih, bias_hh, options);
  return {slice(all, 0, 0, x.size(0)), select(all, 0, x.size(0))};
}

// ---- cases: T = 4, B = 3, I = 2, H = 5 ----

namespace {

using Inputs = std::vector<Var>;

// Inputs x, h, c, weights, biases; both results side by side, so that the checks see both.
OpCase cell_case(const char* name, const LstmOptions& options) {
  auto both = [=](auto cell, const Inputs& in) {
    LstmState y = cell(in[0], LstmState{in[1], in[2]}, in[3], in[4], in[5], in[6], options);
    return concat({y.h, y.c}, -1);
  };
  return {name,
          {{3, 2}, {3, 5}, {3, 5}, {20, 2}, {20, 5}, {20}, {20}},
          [=](auto& in) { return both(lstm_cell, in); },
          [=](auto& in) { return both(reference::lstm_cell, in); }};
}

OpCase sequence_case(const char* name, const LstmOptions& options, bool masked = false) {
  auto both = [=](auto over_time, const Inputs& in) {
    LstmOptions o = options;
    if (masked)
      o.state_mask = Tensor::from({3, 5}, {2, 0, 2, 2, 0, 0, 0, 2, 0, 2, 2, 2, 0, 2, 0}, in[0].dtype());
    LstmStates y = over_time(in[0], LstmState{in[1], in[2]}, in[3], in[4], in[5], in[6], o);
    return concat({y.h, stack({y.c_n}, 0)}, 0);
  };
  return {name,
          {{4, 3, 2}, {3, 5}, {3, 5}, {20, 2}, {20, 5}, {20}, {20}},
          [=](auto& in) { return both(lstm, in); },
          [=](auto& in) { return both(reference::lstm, in); }};
}

Tensor some_lengths() { return Tensor::from_ids({3}, {4, 0, 2}); }

}  // namespace

GRADUS_OP_CASES(cell_case("lstm_cell", {}), sequence_case("lstm", {}), sequence_case("lstm: reverse", {.reverse = true}),
                sequence_case("lstm: lengths", {.lengths = some_lengths()}),
                sequence_case("lstm: reverse, lengths", {.reverse = true, .lengths = some_lengths()}),
                sequence_case("lstm: sorted lengths", {.lengths = Tensor::from_ids({3}, {3, 2, 1})}),
                sequence_case("lstm: nothing but padding", {.lengths = Tensor::from_ids({3}, {0, 0, 0})}),
                sequence_case("lstm: state mask", {}, true),
                sequence_case("lstm: state mask, reverse, lengths", {.reverse = true, .lengths = some_lengths()}, true),
                {"lstm: no biases, no initial state, only h used",
                 {{4, 3, 2}, {20, 2}, {20, 5}},
                 [](auto& in) { return lstm(in[0], {}, in[1], in[2], {}, {}).h; },
                 [](auto& in) { return reference::lstm(in[0], {}, in[1], in[2], {}, {}).h; }},
                {"lstm: only the last cell used",
                 {{4, 3, 2}, {20, 2}, {20, 5}},
                 [](auto& in) { return lstm(in[0], {}, in[1], in[2], {}, {}).c_n; },
                 [](auto& in) { return reference::lstm(in[0], {}, in[1], in[2], {}, {}).c_n; }});

}  // namespace gradus
