#include <gradus/nn/rnn.h>

#include <gradus/nn/check.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

Var activate(const Var& x, Nonlinearity nonlinearity) {
  return nonlinearity == Nonlinearity::tanh ? tanh(x) : relu(x);
}

// u8 [B, 1]: 1 where time step t is real.
Tensor real_at(const Tensor& lengths, int64_t t) {
  int64_t B = lengths.numel();
  Tensor mask({B, 1}, DType::u8);
  for (int64_t b = 0; b < B; ++b) mask.u8()[b] = t < lengths.i32()[b];
  return mask;
}

// One direction over time, all states [T, B, H]. The input's product is one for all steps.
Var run_over_time(const Var& x, const Var& h0, const RecurrentWeights& w, bool reverse, const Tensor& lengths,
                  Nonlinearity nonlinearity) {
  int64_t T = x.size(0);
  Var projected = linear(x, w.weight_ih, w.bias_ih);
  Var h = h0.defined() ? h0 : Var(Tensor::zeros({x.size(1), w.weight_hh.shape()[1]}, x.dtype()));
  std::vector<Var> states(static_cast<size_t>(T));
  for (int64_t step = 0; step < T; ++step) {
    int64_t t = reverse ? T - 1 - step : step;
    Var next = activate(select(projected, 0, t) + linear(h, w.weight_hh, w.bias_hh), nonlinearity);
    h = lengths.defined() ? where(real_at(lengths, t), next, h) : next;
    states[static_cast<size_t>(t)] = h;
  }
  return stack(states, 0);
}

}  // namespace

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, Rng& rng, const RNNCellOptions& options)
    : nonlinearity(options.nonlinearity) {
  must_be_positive("RNNCell", "input_size", input_size);
  must_be_positive("RNNCell", "hidden_size", hidden_size);
  RecurrentWeights w(1, input_size, hidden_size, options.bias, rng);
  weight_ih = std::move(w.weight_ih);
  weight_hh = std::move(w.weight_hh);
  bias_ih = std::move(w.bias_ih);
  bias_hh = std::move(w.bias_hh);
}

Var RNNCell::operator()(const Var& x, const Var& h) const {
  Var next = linear(x, weight_ih, bias_ih);
  if (h.defined()) return activate(next + linear(h, weight_hh, bias_hh), nonlinearity);
  return activate(bias_hh.defined() ? next + bias_hh : next, nonlinearity);
}

void RNNCell::params(ParamVisitor& visit) {
  visit("weight_ih", weight_ih);
  visit("weight_hh", weight_hh);
  visit("bias_ih", bias_ih);
  visit("bias_hh", bias_hh);
}

RNN::RNN(int64_t input_size, int64_t hidden_size, Rng& rng, const RNNOptions& options)
    : stack({.name = "RNN", .gates = 1, .input_size = input_size, .hidden_size = hidden_size,
             .num_layers = options.num_layers, .bias = options.bias, .dropout = options.dropout,
             .bidirectional = options.bidirectional}, rng),
      nonlinearity(options.nonlinearity) {}

RecurrentOutput RNN::operator()(const Var& x, const Tensor& lengths, const Var& h0) const {
  auto run = [&](const Var& in, const Var& start, const RecurrentWeights& w, bool reverse) {
    return run_over_time(in, start, w, reverse, lengths, nonlinearity);
  };
  return stack(run, x, lengths, h0);
}

void RNN::params(ParamVisitor& visit) { stack.params(visit); }

}  // namespace gradus::nn
