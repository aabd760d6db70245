#include <gradus/ops/layer_norm_lstm.h>

#include <gradus/kernels/lstm.h>
#include <gradus/op_case.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/recurrent_norm.h>
#include <gradus/ops/shape.h>

// The LSTM with both halves of its gates' summed inputs normalised, and its cell on the way out (Ba, Kiros &
// Hinton 2016, arXiv:1607.06450, supplement, equations 20 to 22), gates stacked i, f, g, o.
// x [T, B, I] -> h [T, B, H]
//   1. p = W_ih x, pre = N_ih(p)            one product and one normalisation of the 4H over all real steps
//   2. q_t = W_hh (m h_{t-1}), pre_t += N_hh(q_t)                        step by step, as what follows
//   3. i, f, o = s(pre_t), g = tanh(pre_t), c_t = f c_{t-1} + i g
//   4. y_t = N_c(c_t), h_t = o tanh(y_t)    the cell that is carried over is not normalised
// Backward, newest step first, dh and dc with what came from step t+1. N': from dy to da for y = N(a), in a
// row of n with xh = (a - mean) / sqrt(var + eps), g = gain dy:
//   N'(dy) = (g - mean(g) - xh mean(g xh)) / sqrt(var + eps),   dgain += dy xh,   doffset += dy
//   4. dc += N_c'(dh o (1 - tanh^2(y_t))),   dpre_o = dh tanh(y_t) o (1 - o)
//   3. dpre_i, dpre_f, dpre_g = dc g i (1 - i), dc c_{t-1} f (1 - f), dc i (1 - g^2),   dc_{t-1} = dc f
//   2. dq_t = N_hh'(dpre_t),   dh_{t-1} = m (dq_t W_hh)
//   1. dp = N_ih'(dpre), dx = dp W_ih, dW_ih = dp^T x, dW_hh = dq^T (m h_prev), over all steps at once
//
// As in lstm.cc the node's output is all h and, one row further, the last c, [T + 1, B, H].

namespace gradus {
namespace reference {

LstmState layer_norm_lstm_cell(const Input& x, const LstmState& state, const Var& weight_ih,
                               const Var& weight_hh, const LstmNorms& norms, const LstmOptions& options) {
  At at(x.caller());
  int64_t H = state.h.size(-1);
  Var seen = options.state_mask.defined() ? state.h * options.state_mask : state.h;
  Var pre = normalise(linear(x, weight_ih, {}), norms.ih) + normalise(linear(seen, weight_hh, {}), norms.hh);
  std::vector<Var> a = split(pre, {H, H, H, H}, -1);
  Var c = sigmoid(a[1]) * state.c + sigmoid(a[0]) * tanh(a[2]);
  return {sigmoid(a[3]) * tanh(normalise(c, norms.c)), c};
}

LstmStates layer_norm_lstm(const Input& x, const LstmState& start, const Var& weight_ih, const Var& weight_hh,
                           const LstmNorms& norms, const LstmOptions& options) {
  At at(x.caller());
  return lstm_over_time(x, start, weight_hh.size(1), options, [&](const Var& x_t, const LstmState& state) {
    return reference::layer_norm_lstm_cell(x_t, state, weight_ih, weight_hh, norms, options);
  });
}

}  // namespace reference

namespace {

enum { kIh = 4, kHh = 6, kC = 8, kC0 = 10 };  // norms (weight, bias) and first cell among the node's inputs

struct LayerNormLstm : Recurrence {
  RowNorm norm_ih{}, norm_hh{}, norm_c{};
  Tensor c0{};                       // [B, H] sorted
  Tensor p{}, q{}, units{};          // [N, 4H] both products; i, f, g, o
  Tensor c_before{}, c{}, tanh_y{};  // [N, H]

  // out [T + 1, B, H]
  template <class T>
  void forward(T* out) {
    auto [steps, B, I, H] = size;
    const int64_t W = 4 * H;
    project(data<T>(p));  // 1
    norm_ih.forward(0, real.total(), data<T>(p), W, false, data<T>(units), W);
    Tensor h = h0.clone(), cell = c0.clone();
    auto w = packed<T>(Use<T>::transposed);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = time(k), first = real.offset(t), n = real.count(t);
      T *q_t = data<T>(q) + first * W, *units_t = data<T>(units) + first * W;
      T *old = data<T>(c_before) + first * H, *c_t = data<T>(c) + first * H,
        *y_t = data<T>(tanh_y) + first * H;
      w.product(n, see(t, data<T>(h)), H, false, q_t, W);  // 2
      norm_hh.forward(first, n, q_t, W, true, units_t, W);
      std::copy_n(data<T>(cell), n * H, old);
      kernels::lstm_cell_state(n, H, units_t, old, c_t);  // 3
      std::copy_n(c_t, n * H, data<T>(cell));
      norm_c.forward(first, n, c_t, H, false, y_t, H);  // 4
      kernels::lstm_output(n, H, units_t, y_t, data<T>(h));
      put(data<T>(h), out + t * B * H);
    }
    put(data<T>(cell), out + steps * B * H);
  }

  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, I, H] = size;
    const int64_t W = 4 * H;
    Tensor dpre = real.empty(W, dtype()), dq = real.empty(W, dtype());
    Tensor dh = Tensor::zeros({B, H}, dtype()), dc = real.sort(dout.row(steps)).clone(), dy({B, H}, dtype()),
           scratch({B, H}, dtype());
    NormGradients of_ih(dx, kIh, W, dtype()), of_hh(dx, kHh, W, dtype()), of_c(dx, kC, H, dtype());
    {  // the packed weights go before the gradients of the weights come
      auto w = packed<T>(Use<T>::plain);
      T *g = data<T>(dh), *dcell = data<T>(dc), *dy_t = data<T>(dy);
      for (int64_t k = steps; k-- > 0;) {
        int64_t t = time(k), first = real.offset(t), n = real.count(t);
        const T *units_t = data<T>(units) + first * W, *c_t = data<T>(c) + first * H;
        T *dpre_t = data<T>(dpre) + first * W, *dq_t = data<T>(dq) + first * W;
        take(data<T>(dout) + t * B * H, g);
        kernels::lstm_output_backward(n, H, units_t, data<T>(tanh_y) + first * H, g, dpre_t, dy_t);  // 4
        norm_c.backward(first, n, c_t, H, dy_t, H, true, dcell, H, of_c);
        kernels::lstm_cell_state_backward(n, H, units_t, data<T>(c_before) + first * H, dcell, dpre_t);  // 3
        norm_hh.backward(first, n, data<T>(q) + first * W, W, dpre_t, W, false, dq_t, W, of_hh);         // 2
        recur_back(w, t, dq_t, data<T>(scratch), g);
      }
    }
    norm_ih.backward(0, real.total(), data<T>(p), W, data<T>(dpre), W, false, data<T>(dpre), W, of_ih);  // 1
    finish<T>(dpre, dq, dh, dx);
    if (dx.needed(kC0)) dx.add(kC0, real.unsort(dc));
  }
};

// [T + 1, B, H]
Var run(const char* op, const Var& x, const LstmState& start, const Var& weight_ih, const Var& weight_hh,
        const LstmNorms& norms, const LstmOptions& o) {
  LayerNormLstm lstm{
      make_recurrence(op, 4, x, start.h, weight_ih, weight_hh, {}, {}, o.reverse, o.lengths, o.state_mask)};
  auto [steps, B, I, H] = lstm.size;
  DType type = x.dtype();
  check_norm(op, "norm_ih", norms.ih, 4 * H, "4 hidden_size", type);
  check_norm(op, "norm_hh", norms.hh, 4 * H, "4 hidden_size", type);
  check_norm(op, "norm_c", norms.c, H, "hidden_size", type);
  check_state(op, "the initial cell", start.c, lstm.size, type);
  lstm.norm_ih = RowNorm(norms.ih, 0, 4 * H, lstm.real);
  lstm.norm_hh = RowNorm(norms.hh, 0, 4 * H, lstm.real);
  lstm.norm_c = RowNorm(norms.c, 0, H, lstm.real);
  lstm.c0 = start.c.defined() ? lstm.real.sort(start.c.value()) : Tensor::zeros({B, H}, type);
  for (Tensor* wide : {&lstm.p, &lstm.q, &lstm.units}) *wide = lstm.real.empty(4 * H, type);
  for (Tensor* narrow : {&lstm.c_before, &lstm.c, &lstm.tanh_y}) *narrow = lstm.real.empty(H, type);
  Tensor out({steps + 1, B, H}, type);
  return record_recurrence(op, std::move(lstm),
                           {x, start.h, weight_ih, weight_hh, norms.ih.weight, norms.ih.bias, norms.hh.weight,
                            norms.hh.bias, norms.c.weight, norms.c.bias, start.c},
                           out);
}

}  // namespace

LstmState layer_norm_lstm_cell(const Input& x, const LstmState& state, const Var& weight_ih,
                               const Var& weight_hh, const LstmNorms& norms, const LstmOptions& options) {
  At at(x.caller());
  check_cell_input("layer_norm_lstm_cell", x);
  Var both = run("layer_norm_lstm_cell", x, state, weight_ih, weight_hh, norms, options);
  return {select(both, 0, 0), select(both, 0, 1)};
}

LstmStates layer_norm_lstm(const Input& x, const LstmState& start, const Var& weight_ih, const Var& weight_hh,
                           const LstmNorms& norms, const LstmOptions& options) {
  At at(x.caller());
  check_sequence("layer_norm_lstm", x);
  Var all = run("layer_norm_lstm", x, start, weight_ih, weight_hh, norms, options);
  return {slice(all, 0, 0, x.size(0)), select(all, 0, x.size(0))};
}

// ---- cases: T = 4, B = 3, I = 2, H = 5 ----

namespace {

using Inputs = std::vector<Var>;

// Inputs x, h, c, weights, norms; both results side by side, so that the checks see both.
OpCase cell_case(const char* name, const LstmOptions& options) {
  auto with = [=](auto cell) {
    return [=](const Inputs& in) {
      LstmNorms norms{{in[5], in[6]}, {in[7], in[8]}, {in[9], in[10]}};
      LstmState y = cell(in[0], LstmState{in[1], in[2]}, in[3], in[4], norms, options);
      return concat({y.h, y.c}, -1);
    };
  };
  return {name,
          {{3, 2}, {3, 5}, {3, 5}, {20, 2}, {20, 5}, {20}, {20}, {20}, {20}, {5}, {5}},
          with(layer_norm_lstm_cell),
          with(reference::layer_norm_lstm_cell)};
}

OpCase sequence_case(const char* name, const LstmOptions& options, bool masked = false) {
  auto with = [=](auto over_time) {
    return [=](const Inputs& in) {
      LstmOptions o = options;
      if (masked)
        o.state_mask = Tensor::from({3, 5}, {2, 0, 2, 2, 0, 0, 0, 2, 0, 2, 2, 2, 0, 2, 0}, in[0].dtype());
      LstmNorms norms{{in[5], in[6]}, {in[7], in[8]}, {in[9], in[10]}};
      LstmStates y = over_time(in[0], LstmState{in[1], in[2]}, in[3], in[4], norms, o);
      return concat({y.h, stack({y.c_n}, 0)}, 0);
    };
  };
  return {name,
          {{4, 3, 2}, {3, 5}, {3, 5}, {20, 2}, {20, 5}, {20}, {20}, {20}, {20}, {5}, {5}},
          with(layer_norm_lstm),
          with(reference::layer_norm_lstm)};
}

Tensor some_lengths() { return Tensor::from_ids({3}, {4, 0, 2}); }

}  // namespace

GRADUS_OP_CASES(cell_case("layer_norm_lstm_cell", {}), sequence_case("layer_norm_lstm", {}),
                sequence_case("layer_norm_lstm: reverse", {.reverse = true}),
                sequence_case("layer_norm_lstm: lengths", {.lengths = some_lengths()}),
                sequence_case("layer_norm_lstm: sorted lengths",
                              {.lengths = Tensor::from_ids({3}, {3, 2, 1})}),
                sequence_case("layer_norm_lstm: nothing but padding",
                              {.lengths = Tensor::from_ids({3}, {0, 0, 0})}),
                sequence_case("layer_norm_lstm: state mask, reverse, lengths",
                              {.reverse = true, .lengths = some_lengths()}, true),
                {"layer_norm_lstm: no offsets, no initial state, only h used",
                 {{4, 3, 2}, {20, 2}, {20, 5}, {20}, {20}, {5}},
                 [](auto& in) {
                   return layer_norm_lstm(in[0], {}, in[1], in[2], {{in[3], {}}, {in[4], {}}, {in[5], {}}}).h;
                 },
                 [](auto& in) {
                   return reference::layer_norm_lstm(in[0], {}, in[1], in[2],
                                                     {{in[3], {}}, {in[4], {}}, {in[5], {}}})
                       .h;
                 }});

}  // namespace gradus
