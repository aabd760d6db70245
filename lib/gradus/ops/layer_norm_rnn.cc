#include <gradus/ops/layer_norm_rnn.h>

#include <gradus/op_case.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/recurrent_norm.h>
#include <gradus/ops/shape.h>

// The simple recurrent network with its summed inputs normalised (Ba, Kiros & Hinton 2016, arXiv:1607.06450,
// equation 4), f = tanh or relu.   x [T, B, I] -> h [T, B, H]
//   1. a_t = W_ih x_t                   one product over all real steps
//   2. a_t += W_hh (m h_{t-1})          step by step
//   3. y_t = N(a_t) = gain (a_t - mean) / sqrt(var + eps) + offset, mean and var over the H
//   4. h_t = f(y_t)                     in place
// Backward, newest step first, dh = dh_t + what came from step t+1:
//   4. dy = dh f'(y): dh (1 - h^2) for tanh, dh [h > 0] for relu
//   3. with xh = (a - mean) / sqrt(var + eps), g = gain dy and means over the H:
//      da = (g - mean(g) - xh mean(g xh)) / sqrt(var + eps),   dgain += dy xh,   doffset += dy
//   2. dh_{t-1} = m (da W_hh)
//   1. dx = da W_ih, dW_ih = da^T x, dW_hh = da^T (m h_prev), over all steps at once

namespace gradus {
namespace reference {

Var layer_norm_rnn_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh,
                        const NormWeights& norm, const RnnOptions& options) {
  At at(x.caller());
  Var seen = options.state_mask.defined() ? h * options.state_mask : h;
  Var y = normalise(linear(x, weight_ih, {}) + linear(seen, weight_hh, {}), norm);
  return options.nonlinearity == Nonlinearity::tanh ? tanh(y) : relu(y);
}

Var layer_norm_rnn(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
                   const NormWeights& norm, const RnnOptions& options) {
  At at(x.caller());
  Var start = h0.defined() ? h0 : Var(Tensor::zeros({x.size(1), weight_hh.size(1)}, x.dtype()));
  return over_time(x.size(0), start, options.reverse, options.lengths, [&](int64_t t, const Var& h) {
    return reference::layer_norm_rnn_cell(select(x, 0, t), h, weight_ih, weight_hh, norm, options);
  });
}

}  // namespace reference

namespace {

enum { kNorm = 4 };  // its weight and bias among the node's inputs

struct LayerNormRnn : Recurrence {
  Nonlinearity nonlinearity;
  RowNorm norm{};
  Tensor a{}, h{};  // [N, H] sums before N, states after the steps

  // out [T, B, H]
  template <class T>
  void forward(T* out) {
    auto [steps, B, I, H] = size;
    project(data<T>(a));  // 1
    Tensor state = h0.clone();
    auto w = packed<T>(Use<T>::transposed);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = time(k), first = real.offset(t), n = real.count(t);
      T *a_t = data<T>(a) + first * H, *h_t = data<T>(h) + first * H;
      w.product(n, see(t, data<T>(state)), H, true, a_t, H);  // 2
      norm.forward(first, n, a_t, H, false, h_t, H);          // 3
      activate(nonlinearity, h_t, n * H);                     // 4
      std::copy_n(h_t, n * H, data<T>(state));
      put(data<T>(state), out + t * B * H);
    }
  }

  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, I, H] = size;
    Tensor da = real.empty(H, dtype()), dh = Tensor::zeros({B, H}, dtype()), scratch({B, H}, dtype());
    NormGradients of_norm(dx, kNorm, H, dtype());
    {  // the packed weights go before the gradients of the weights come
      auto w = packed<T>(Use<T>::plain);
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

Var run(const char* op, const Var& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
        const NormWeights& norm, const RnnOptions& o) {
  LayerNormRnn rnn{
      make_recurrence(op, 1, x, h0, weight_ih, weight_hh, {}, {}, o.reverse, o.lengths, o.state_mask),
      o.nonlinearity};
  auto [steps, B, I, H] = rnn.size;
  check_norm(op, "norm", norm, H, "hidden_size", x.dtype());
  rnn.norm = RowNorm(norm, 0, H, rnn.real);
  rnn.a = rnn.real.empty(H, x.dtype());
  rnn.h = rnn.real.empty(H, x.dtype());
  Tensor out(x.dims() == 2 ? Shape{B, H} : Shape{steps, B, H}, x.dtype());
  return record_recurrence(op, std::move(rnn), {x, h0, weight_ih, weight_hh, norm.weight, norm.bias}, out);
}

}  // namespace

Var layer_norm_rnn_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh,
                        const NormWeights& norm, const RnnOptions& options) {
  At at(x.caller());
  check_cell_input("layer_norm_rnn_cell", x);
  return run("layer_norm_rnn_cell", x, h, weight_ih, weight_hh, norm, options);
}

Var layer_norm_rnn(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
                   const NormWeights& norm, const RnnOptions& options) {
  At at(x.caller());
  check_sequence("layer_norm_rnn", x);
  return run("layer_norm_rnn", x, h0, weight_ih, weight_hh, norm, options);
}

// ---- cases: T = 4, B = 3, I = 2, H = 5 ----

namespace {

OpCase cell_case(const char* name, const RnnOptions& options) {
  auto with = [=](auto cell) {
    return [=](const std::vector<Var>& in) {
      return cell(in[0], in[1], in[2], in[3], {in[4], in[5]}, options);
    };
  };
  return {name,
          {{3, 2}, {3, 5}, {5, 2}, {5, 5}, {5}, {5}},
          with(layer_norm_rnn_cell),
          with(reference::layer_norm_rnn_cell)};
}

// `masked`: with a mask on the state, as dropout with p = 1/2 makes one; in the element type of x.
OpCase sequence_case(const char* name, const RnnOptions& options, bool masked = false) {
  auto with = [=](auto over_time) {
    return [=](const std::vector<Var>& in) {
      RnnOptions o = options;
      if (masked)
        o.state_mask = Tensor::from({3, 5}, {2, 0, 2, 2, 0, 0, 0, 2, 0, 2, 2, 2, 0, 2, 0}, in[0].dtype());
      return over_time(in[0], in[1], in[2], in[3], {in[4], in[5]}, o);
    };
  };
  return {name,
          {{4, 3, 2}, {3, 5}, {5, 2}, {5, 5}, {5}, {5}},
          with(layer_norm_rnn),
          with(reference::layer_norm_rnn)};
}

Tensor some_lengths() { return Tensor::from_ids({3}, {4, 0, 2}); }

}  // namespace

GRADUS_OP_CASES(cell_case("layer_norm_rnn_cell", {}),
                cell_case("layer_norm_rnn_cell: relu", {.nonlinearity = Nonlinearity::relu}),
                sequence_case("layer_norm_rnn", {}),
                sequence_case("layer_norm_rnn: relu", {.nonlinearity = Nonlinearity::relu}),
                sequence_case("layer_norm_rnn: lengths", {.lengths = some_lengths()}),
                sequence_case("layer_norm_rnn: relu, reverse, lengths",
                              {.nonlinearity = Nonlinearity::relu, .reverse = true,
                               .lengths = some_lengths()}),
                sequence_case("layer_norm_rnn: sorted lengths",
                              {.lengths = Tensor::from_ids({3}, {3, 2, 1})}),
                sequence_case("layer_norm_rnn: nothing but padding",
                              {.lengths = Tensor::from_ids({3}, {0, 0, 0})}),
                sequence_case("layer_norm_rnn: state mask, reverse, lengths",
                              {.reverse = true, .lengths = some_lengths()}, true),
                {"layer_norm_rnn: no offset, no initial state",
                 {{4, 3, 2}, {5, 2}, {5, 5}, {5}},
                 [](auto& in) { return layer_norm_rnn(in[0], {}, in[1], in[2], {in[3], {}}); },
                 [](auto& in) { return reference::layer_norm_rnn(in[0], {}, in[1], in[2], {in[3], {}}); }});

}  // namespace gradus
