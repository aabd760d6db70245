#include <gradus/nn/gru.h>

namespace gradus::nn {

GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, Rng& rng, const GRUCellOptions& o, Caller caller)
    : RecurrentCell({.reset_after = o.reset_after, .bahdanau = o.bahdanau, .layer_norm = o.layer_norm},
                    input_size, hidden_size, rng, o.bias, "GRUCell", caller) {}

GRU::GRU(int64_t input_size, int64_t hidden_size, Rng& rng, const GRUOptions& o, Caller caller)
    : stack({.name = "GRU",
             .cell = {.reset_after = o.reset_after, .bahdanau = o.bahdanau, .layer_norm = o.layer_norm},
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

RecurrentOutput GRU::operator()(const Input& x, const Tensor& lengths, const Var& h0) const {
  At at(x.caller());
  return stack(x, lengths, {h0, {}});
}

}  // namespace gradus::nn
