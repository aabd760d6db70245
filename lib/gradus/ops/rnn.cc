#include <gradus/ops/rnn.h>

#include <algorithm>

#include <gradus/op_case.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/recurrence.h>
#include <gradus/ops/shape.h>

// The simple recurrent network (Elman 1990), f = tanh or relu.   x [T, B, I] -> h [T, B, H]
//   1. pre_t = W_ih x_t + b_ih + b_hh        one product over all real steps, written where h will stand
//   2. pre_t += W_hh (m h_{t-1})             step by step
//   3. h_t = f(pre_t)                        in place
// Backward, newest step first, dh = dh_t + what came from step t+1:
//   3. dpre_t = dh f'(pre_t): dh (1 - h_t^2) for tanh, dh [h_t > 0] for relu; nothing but h is saved
//   2. dh_{t-1} = m (dpre_t W_hh)
//   1. dx = dpre W_ih, dW_ih = dpre^T x, dW_hh = dpre^T (m h_prev), biases the column sums, over all steps at once

namespace gradus {
namespace reference {

Var rnn_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const RnnOptions& options) {
  At at(x.caller());
  Var seen = options.state_mask.defined() ? h * options.state_mask : h;
  Var pre = linear(x, weight_ih, bias_ih) + linear(seen, weight_hh, bias_hh);
  return options.nonlinearity == Nonlinearity::tanh ? tanh(pre) : relu(pre);
}

Var rnn(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
        const Var& bias_hh, const RnnOptions& options) {
  At at(x.caller());
  Var start = h0.defined() ? h0 : Var(Tensor::zeros({x.size(1), weight_hh.size(1)}, x.dtype()));
  return over_time(x.size(0), start, options.reverse, options.lengths, [&](int64_t t, const Var& h) {
    return reference::rnn_cell(select(x, 0, t), h, weight_ih, weight_hh, bias_ih, bias_hh, options);
  });
}

}  // namespace reference

namespace {

struct Rnn : Recurrence {
  Nonlinearity nonlinearity;
  Tensor h{};  // [N, H] states after the steps

  // out [T, B, H]
  template <class T>
  void forward(T* out) {
    auto [steps, B, I, H] = size;
    project(data<T>(h), b_hh);
    Tensor state = h0.clone();
    auto w = packed<T>(Use<T>::transposed);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = time(k), n = real.count(t) * H;
      T* h_t = data<T>(h) + real.offset(t) * H;
      w.product(real.count(t), see(t, data<T>(state)), H, true, h_t, H);
      activate(nonlinearity, h_t, n);
      std::copy_n(h_t, n, data<T>(state));
      put(data<T>(state), out + t * B * H);
    }
  }

  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, I, H] = size;
    Tensor dpre = real.empty(H, dtype()), dh = Tensor::zeros({B, H}, dtype()), scratch({B, H}, dtype());
    {  // the packed weights go before the gradients of the weights come
      auto w = packed<T>(Use<T>::plain);
      for (int64_t k = steps; k-- > 0;) {
        int64_t t = time(k), at = real.offset(t) * H, n = real.count(t) * H;
        T *g = data<T>(dh), *dpre_t = data<T>(dpre) + at;
        take(data<T>(dout) + t * B * H, g);
        activate_back(nonlinearity, data<T>(h) + at, g, dpre_t, n);
        std::fill_n(g, n, T(0));
        recur_back(w, t, dpre_t, data<T>(scratch), g);
      }
    }
    finish<T>(dpre, dpre, dh, dx);
  }
};

Var run(const char* op, const Var& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
        const Var& bias_ih, const Var& bias_hh, const RnnOptions& o) {
  Rnn rnn{make_recurrence(op, 1, x, h0, weight_ih, weight_hh, bias_ih, bias_hh, o.reverse, o.lengths,
                          o.state_mask),
          o.nonlinearity};
  auto [steps, B, I, H] = rnn.size;
  rnn.h = rnn.real.empty(H, x.dtype());
  Tensor out(x.dims() == 2 ? Shape{B, H} : Shape{steps, B, H}, x.dtype());
  return record_recurrence(op, std::move(rnn), {x, h0, weight_ih, weight_hh, bias_ih, bias_hh}, out);
}

}  // namespace

Var rnn_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const RnnOptions& options) {
  At at(x.caller());
  check_cell_input("rnn_cell", x);
  return run("rnn_cell", x, h, weight_ih, weight_hh, bias_ih, bias_hh, options);
}

Var rnn(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
        const Var& bias_hh, const RnnOptions& options) {
  At at(x.caller());
  check_sequence("rnn", x);
  return run("rnn", x, h0, weight_ih, weight_hh, bias_ih, bias_hh, options);
}

// ---- cases: T = 4, B = 3, I = 2, H = 5 ----

namespace {

OpCase cell_case(const char* name, const RnnOptions& options) {
  return {name,
          {{3, 2}, {3, 5}, {5, 2}, {5, 5}, {5}, {5}},
          [=](auto& in) { return rnn_cell(in[0], in[1], in[2], in[3], in[4], in[5], options); },
          [=](auto& in) { return reference::rnn_cell(in[0], in[1], in[2], in[3], in[4], in[5], options); }};
}

OpCase sequence_case(const char* name, const RnnOptions& options) {
  return {name,
          {{4, 3, 2}, {3, 5}, {5, 2}, {5, 5}, {5}, {5}},
          [=](auto& in) { return rnn(in[0], in[1], in[2], in[3], in[4], in[5], options); },
          [=](auto& in) { return reference::rnn(in[0], in[1], in[2], in[3], in[4], in[5], options); }};
}

// With a mask on the state, as dropout with p = 1/2 makes one; in the element type of x.
OpCase masked_case(const char* name, const RnnOptions& options) {
  auto masked = [=](const Var& x) {
    RnnOptions with = options;
    with.state_mask = Tensor::from({3, 5}, {2, 0, 2, 2, 0, 0, 0, 2, 0, 2, 2, 2, 0, 2, 0}, x.dtype());
    return with;
  };
  return {name,
          {{4, 3, 2}, {3, 5}, {5, 2}, {5, 5}, {5}, {5}},
          [=](auto& in) { return rnn(in[0], in[1], in[2], in[3], in[4], in[5], masked(in[0])); },
          [=](auto& in) { return reference::rnn(in[0], in[1], in[2], in[3], in[4], in[5], masked(in[0])); }};
}

Tensor some_lengths() { return Tensor::from_ids({3}, {4, 0, 2}); }

}  // namespace

GRADUS_OP_CASES(cell_case("rnn_cell", {}), cell_case("rnn_cell: relu", {.nonlinearity = Nonlinearity::relu}),
                sequence_case("rnn", {}), sequence_case("rnn: relu", {.nonlinearity = Nonlinearity::relu}),
                sequence_case("rnn: reverse", {.reverse = true}),
                sequence_case("rnn: lengths", {.lengths = some_lengths()}),
                sequence_case("rnn: relu, reverse, lengths",
                              {.nonlinearity = Nonlinearity::relu, .reverse = true, .lengths = some_lengths()}),
                sequence_case("rnn: sorted lengths", {.lengths = Tensor::from_ids({3}, {3, 2, 1})}),
                sequence_case("rnn: nothing but padding", {.lengths = Tensor::from_ids({3}, {0, 0, 0})}),
                masked_case("rnn: state mask", {}),
                masked_case("rnn: state mask, reverse, lengths", {.reverse = true, .lengths = some_lengths()}),
                {"rnn: no biases, no initial state",
                 {{4, 3, 2}, {5, 2}, {5, 5}},
                 [](auto& in) { return rnn(in[0], {}, in[1], in[2], {}, {}); },
                 [](auto& in) { return reference::rnn(in[0], {}, in[1], in[2], {}, {}); }});

}  // namespace gradus
