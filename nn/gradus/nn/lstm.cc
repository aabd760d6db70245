#include <gradus/nn/lstm.h>

namespace gradus::nn {

LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, Rng& rng, const LSTMCellOptions& o, Caller caller)
    : RecurrentCell({.kind = CellKind::lstm, .forget_bias = o.forget_bias, .layer_norm = o.layer_norm},
                    input_size, hidden_size, rng, o.bias, "LSTMCell", caller) {}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, Rng& rng, const LSTMOptions& o, Caller caller)
    : stack({.name = "LSTM",
             .cell = {.kind = CellKind::lstm, .forget_bias = o.forget_bias, .layer_norm = o.layer_norm},
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

RecurrentOutput LSTM::operator()(const Input& x, const Tensor& lengths, const Var& h0, const Var& c0) const {
  At at(x.caller());
  return stack(x, lengths, {h0, c0});
}

}  // namespace gradus::nn
