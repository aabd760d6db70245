#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

/// One step of an LSTM (Hochreiter & Schmidhuber 1997), gates i, f, g, o as in PyTorch; equations in
/// gradus/ops/lstm.h. x [B, input_size], h and c [B, hidden_size] or undefined (zeros) -> both after the step.
struct LSTMCell : RecurrentCell {
  LSTMCell(int64_t in, int64_t hidden, const RngInput& rng, const CellType& cell_type = {})
      : RecurrentCell(of_kind(CellKind::lstm, cell_type, "LSTMCell", rng.caller()), in, hidden, rng,
                      "LSTMCell") {}
  RecurrentState operator()(const Input& x, const Var& h = {}, const Var& c = {}) const {
    return step(x, {h, c});
  }
};

/// An LSTM over time: x [T, B, input_size] (time-major), lengths i32 [B] or undefined (all T), h0 and c0
/// [num_layers * dirs, B, hidden_size] or undefined (zeros). Equal to torch.nn.LSTM on a packed sequence.
struct LSTM : RecurrentStack {
  LSTM(int64_t in, int64_t hidden, const RngInput& rng, const RecurrentOptions& o = {})
      : RecurrentStack("LSTM", in, hidden, rng, of_kind(CellKind::lstm, o, "LSTM", rng.caller())) {}
  /// @throws Error as RecurrentStack.
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {}, const Var& h0 = {},
                             const Var& c0 = {}) const {
    return RecurrentStack::operator()(x, lengths, {h0, c0});
  }
};

}  // namespace gradus::nn
