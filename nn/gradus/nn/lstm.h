#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

/// One step of an LSTM (Hochreiter & Schmidhuber 1997), gates i, f, g, o as in PyTorch; equations in
/// gradus/ops/lstm.h. x [B, input_size], h and c [B, hidden_size] or undefined (zeros) -> both after the step.
struct LSTMCell : RecurrentCell {
  LSTMCell(int64_t in, int64_t hidden, const RngInput& rng, const CellType& cell = {})
      : RecurrentCell(of_kind(CellKind::lstm, cell, "LSTMCell", rng.caller()), in, hidden, rng, "LSTMCell") {}
  RecurrentState operator()(const Input& x, const Var& h = {}, const Var& c = {}) const {
    return step(x, {h, c});
  }
};

/// An LSTM over time, called as RecurrentStack. Equal to torch.nn.LSTM on a packed sequence.
struct LSTM : RecurrentStack {
  LSTM(int64_t in, int64_t hidden, const RngInput& rng, const RecurrentOptions& o = {})
      : RecurrentStack("LSTM", in, hidden, rng, of_kind(CellKind::lstm, o, "LSTM", rng.caller())) {}
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {}, const Var& h0 = {},
                             const Var& c0 = {}) const {
    return RecurrentStack::operator()(x, lengths, {h0, c0});
  }
};

}  // namespace gradus::nn
