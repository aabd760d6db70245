#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

/// One step of an LSTM (Hochreiter & Schmidhuber 1997), gates i, f, g, o as in PyTorch; equations in
/// gradus/ops/lstm.h. x [B, input_size], h and c [B, hidden_size] or undefined (zeros) -> both after the step.
struct LSTMCell : RecurrentCell {
  LSTMCell(int64_t input_size, int64_t hidden_size, Rng& rng, const CellType& type = {},
           Caller caller = Caller::current())
      : RecurrentCell(of_kind(CellKind::lstm, type, "LSTMCell", caller), input_size, hidden_size, rng,
                      "LSTMCell", caller) {}
  RecurrentState operator()(const Input& x, const Var& h = {}, const Var& c = {}) const {
    At at(x.caller());
    return step(x, {h, c});
  }
};

/// An LSTM over time: x [T, B, input_size] (time-major), lengths i32 [B] or undefined (all T), h0 and c0
/// [num_layers * dirs, B, hidden_size] or undefined (zeros). Equal to torch.nn.LSTM on a packed sequence.
struct LSTM : RecurrentStack {
  LSTM(int64_t input_size, int64_t hidden_size, Rng& rng, const RecurrentOptions& options = {},
       Caller caller = Caller::current())
      : RecurrentStack("LSTM", input_size, hidden_size, rng, of_kind(CellKind::lstm, options, "LSTM", caller),
                       caller) {}
  /// @throws Error when a shape does not fit or a length is outside 0 .. T.
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {}, const Var& h0 = {},
                             const Var& c0 = {}) const {
    return RecurrentStack::operator()(x, lengths, {h0, c0});
  }
};

}  // namespace gradus::nn
