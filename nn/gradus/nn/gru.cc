#include <gradus/nn/gru.h>

#include <gradus/nn/check.h>
#include <gradus/ops/gru.h>

namespace gradus::nn {

GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, Rng& rng, const GRUCellOptions& options)
    : reset_after(options.reset_after) {
  must_be_positive("GRUCell", "input_size", input_size);
  must_be_positive("GRUCell", "hidden_size", hidden_size);
  RecurrentWeights w(3, input_size, hidden_size, options.bias, rng);
  weight_ih = std::move(w.weight_ih);
  weight_hh = std::move(w.weight_hh);
  bias_ih = std::move(w.bias_ih);
  bias_hh = std::move(w.bias_hh);
}

Var GRUCell::operator()(const Var& x, const Var& h) const {
  Var start = h.defined() || x.dims() < 1 ? h : Var(Tensor::zeros({x.size(0), weight_hh.shape()[1]}, x.dtype()));
  return gru_cell(x, start, weight_ih, weight_hh, bias_ih, bias_hh, {.reset_after = reset_after});
}

void GRUCell::params(ParamVisitor& visit) {
  visit("weight_ih", weight_ih);
  visit("weight_hh", weight_hh);
  visit("bias_ih", bias_ih);
  visit("bias_hh", bias_hh);
}

GRU::GRU(int64_t input_size, int64_t hidden_size, Rng& rng, const GRUOptions& options)
    : stack({.name = "GRU", .gates = 3, .input_size = input_size, .hidden_size = hidden_size,
             .num_layers = options.num_layers, .bias = options.bias, .dropout = options.dropout,
             .bidirectional = options.bidirectional}, rng),
      reset_after(options.reset_after), reference(options.reference) {}

RecurrentOutput GRU::operator()(const Var& x, const Tensor& lengths, const Var& h0) const {
  auto run = [&](const Var& in, const Var& start, const RecurrentWeights& w, bool reverse) {
    GruOptions options{.reset_after = reset_after, .reverse = reverse, .lengths = lengths};
    auto over_time = reference ? gradus::reference::gru : gradus::gru;
    return over_time(in, start, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh, options);
  };
  return stack(run, x, lengths, h0);
}

void GRU::params(ParamVisitor& visit) { stack.params(visit); }

}  // namespace gradus::nn
