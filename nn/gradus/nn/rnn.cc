#include <gradus/nn/rnn.h>

namespace gradus::nn {

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, Rng& rng, const RNNCellOptions& o, Caller caller)
    : RecurrentCell({.kind = CellKind::rnn, .nonlinearity = o.nonlinearity, .layer_norm = o.layer_norm},
                    input_size, hidden_size, rng, o.bias, "RNNCell", caller) {}

RNN::RNN(int64_t input_size, int64_t hidden_size, Rng& rng, const RNNOptions& o, Caller caller)
    : stack({.name = "RNN",
             .cell = {.kind = CellKind::rnn, .nonlinearity = o.nonlinearity, .layer_norm = o.layer_norm},
             .input_size = input_size,
             .hidden_size = hidden_size,
             .num_layers = o.num_layers,
             .bias = o.bias,
             .bidirectional = o.bidirectional,
             .dropout = o.dropout,
             .variational = o.variational,
             .recurrent_dropout = o.recurrent_dropout,
             .residual = o.residual,
             .reference = o.reference},
            rng, caller) {}

RecurrentOutput RNN::operator()(const Input& x, const Tensor& lengths, const Var& h0) const {
  At at(x.caller());
  return stack(x, lengths, {h0, {}});
}

}  // namespace gradus::nn
