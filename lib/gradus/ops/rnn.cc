#include <gradus/ops/rnn.h>

#include <algorithm>

#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/recurrent_cases.h>
#include <gradus/ops/recurrent_norm.h>
#include <gradus/ops/shape.h>

// The simple recurrent network (Elman 1990), f = tanh or relu.   x [T, B, I] -> h [T, B, H]
//   1. a_t = W_ih x_t + b_ih + b_hh     one product over all real steps
//   2. a_t += W_hh (m h_{t-1})          step by step, as what follows
//   3. y_t = N(a_t), layer_norm over the H (Ba et al. 2016, equation 4); without a norm y is a
//   4. h_t = f(y_t)                     in place
// Backward, newest step first, dh = dh_t + what came from step t+1:
//   4. dy = dh f'(y): dh (1 - h^2) for tanh, dh [h > 0] for relu; without a norm nothing but h is saved
//   3. da = N'(dy), the backward of layer_norm.h
//   2. dh_{t-1} = m (da W_hh)
//   1. dx = da W_ih, dW_ih = da^T x, dW_hh = da^T (m h_prev), biases the column sums, over all steps at once

namespace gradus {
namespace reference {

Var rnn_cell(const Input& x, const Var& h, const RecurrentWeights& w, const RnnOptions& options) {
  At at(x.caller());
  Var seen = options.state_mask.defined() ? h * options.state_mask : h;
  Var y = normalise(linear(x, w.ih, w.bias_ih) + linear(seen, w.hh, w.bias_hh), w.norm_ih);
  return options.nonlinearity == Nonlinearity::tanh ? tanh(y) : relu(y);
}

Var rnn(const Input& x, const Var& h0, const RecurrentWeights& w, const RnnOptions& options) {
  At at(x.caller());
  Var start = h0.defined() ? h0 : Var(Tensor::zeros({x.size(1), w.hh.size(1)}, x.dtype()));
  return over_time(x.size(0), start, options.reverse, options.lengths, [&](int64_t t, const Var& h) {
    return reference::rnn_cell(select(x, 0, t), h, w, options);
  });
}

}  // namespace reference

namespace {

enum { kRnnNorm = 6 };  // its weight and bias among the node's inputs

// dpre = dh f'(pre), from y = f(pre).
template <class T>
void activate_back(Nonlinearity f, const T* y, const T* dh, T* dpre, int64_t n) {
  if (f == Nonlinearity::tanh) return kernels::tanh_backward(y, dh, dpre, n);
  for (int64_t i = 0; i < n; ++i) {
    const T up = dh[i];  // read in any case: no branch
    dpre[i] = y[i] > 0 ? up : T(0);
  }
}

struct Rnn : Recurrence {
  Nonlinearity nonlinearity;
  RowNorm norm{};
  // [N, H] states after the steps; sums before the norm, without one the same storage.
  Tensor h = real.empty(size.H, dtype()), a = h;

  // out [T, B, H]
  template <class T>
  void forward(T* out) {
    auto [steps, B, I, H] = size;
    project(data<T>(a), b_hh);  // 1
    Tensor state = h0.clone();
    auto w = packed<T>(Use<T>::transposed, 0, gates);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = time(k), first = real.offset(t), n = real.count(t);
      T *a_t = data<T>(a) + first * H, *h_t = data<T>(h) + first * H;
      w.product(n, see(t, data<T>(state)), H, true, a_t, H);  // 2
      norm.forward(first, n, a_t, H, false, h_t, H);          // 3
      if (nonlinearity == Nonlinearity::tanh) kernels::tanh(h_t, h_t, n * H);  // 4
      else kernels::relu(h_t, h_t, n * H);
      std::copy_n(h_t, n * H, data<T>(state));
      put(data<T>(state), out + t * B * H);
    }
  }

  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, I, H] = size;
    Tensor da = real.empty(H, dtype()), dh = Tensor::zeros({B, H}, dtype()), scratch({B, H}, dtype());
    NormGradients of_norm(static_cast<bool>(norm), dx, kRnnNorm, H, dtype());
    {  // the packed weights go before the gradients of the weights come
      auto w = packed<T>(Use<T>::plain, 0, gates);
      for (int64_t k = steps; k-- > 0;) {
        int64_t t = time(k), first = real.offset(t), n = real.count(t);
        T *g = data<T>(dh), *da_t = data<T>(da) + first * H;
        take(data<T>(dout) + t * B * H, g);
        activate_back(nonlinearity, data<T>(h) + first * H, g, da_t, n * H);                   // 4
        norm.backward(first, n, data<T>(a) + first * H, H, da_t, H, false, da_t, H, of_norm);  // 3
        std::fill_n(g, n * H, T(0));
        recur_back(w, t, da_t, data<T>(scratch), g);  // 2
      }
    }
    finish<T>(da, da, dh, dx);  // 1
  }
};

Var run(const char* op, int dims, const Var& x, const Var& h0, const RecurrentWeights& w,
        const RnnOptions& o) {
  Rnn rnn{make_recurrence(op, 1, dims, x, h0, w, o.reverse, o.lengths, o.state_mask), o.nonlinearity};
  auto [steps, B, I, H] = rnn.size;
  std::vector<Var> inputs = recurrent_inputs(op, x, {h0}, w, {.ih = 1, .hh = 0, .c = 0});
  if (w.normalised()) {
    rnn.norm = RowNorm(w.norm_ih, 0, H, rnn.real);
    rnn.a = rnn.real.empty(H, x.dtype());
  }
  Tensor out(dims == 2 ? Shape{B, H} : Shape{steps, B, H}, x.dtype());
  return record_unit(op, std::move(rnn), inputs, out);
}

}  // namespace

Var rnn_cell(const Input& x, const Var& h, const RecurrentWeights& w, const RnnOptions& options) {
  At at(x.caller());
  return run(w.normalised() ? "layer_norm_rnn_cell" : "rnn_cell", 2, x, h, w, options);
}

Var rnn(const Input& x, const Var& h0, const RecurrentWeights& w, const RnnOptions& options) {
  At at(x.caller());
  return run(w.normalised() ? "layer_norm_rnn" : "rnn", 3, x, h0, w, options);
}

// ---- cases: T = 4, B = 3, I = 2, H = 5 ----

namespace {

OpCase cell_case(const std::string& name, const RnnOptions& options, int norms) {
  return cases::unit_case(name, {3, 2}, 5, rnn_cell, reference::rnn_cell, options, norms);
}

OpCase sequence_case(const std::string& name, const RnnOptions& options, int norms) {
  return cases::unit_case(name, {4, 3, 2}, 5, rnn, reference::rnn, options, norms);
}

std::vector<OpCase> relu_cases(const std::string& op, int norms) {
  RnnOptions relu{.nonlinearity = Nonlinearity::relu}, padded = relu;
  padded.reverse = true;
  padded.lengths = cases::some_lengths();
  return {cell_case(op + "_cell", {}, norms), cell_case(op + "_cell: relu", relu, norms),
          sequence_case(op + ": relu", relu, norms),
          sequence_case(op + ": relu, reverse, lengths", padded, norms)};
}

}  // namespace

GRADUS_OP_CASES(cases::over_time("rnn", sequence_case, 0));
GRADUS_OP_CASES(cases::over_time("layer_norm_rnn", sequence_case, 1));
GRADUS_OP_CASES(relu_cases("rnn", 0));
GRADUS_OP_CASES(relu_cases("layer_norm_rnn", 1));
GRADUS_OP_CASES(cases::bare_case("rnn: no biases, no initial state", {{4, 3, 2}, {5, 2}, {5, 5}}, rnn,
                                 reference::rnn),
                cases::bare_case("layer_norm_rnn: no offset, no initial state",
                                 {{4, 3, 2}, {5, 2}, {5, 5}, {5}}, rnn, reference::rnn));

}  // namespace gradus
