#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

/// h' = tanh(W_ih x + b_ih + W_hh h + b_hh) (Elman 1990). x [B, input_size], h [B, hidden_size] or undefined
/// (zeros) -> [B, hidden_size].
struct RNNCell : RecurrentCell {
  RNNCell(int64_t in, int64_t hidden, const RngInput& rng, const CellType& cell_type = {})
      : RecurrentCell(of_kind(CellKind::rnn, cell_type, "RNNCell", rng.caller()), in, hidden, rng,
                      "RNNCell") {}
  Var operator()(const Input& x, const Var& h = {}) const { return step(x, {h, {}}).h; }
};

/// The cell over time: x [T, B, input_size] (time-major), lengths i32 [B] or undefined (all T), h0
/// [num_layers * dirs, B, hidden_size] or undefined (zeros). Equal to torch.nn.RNN on a packed sequence: a
/// padded step carries the state over, so that the backward direction starts at the last real token.
struct RNN : RecurrentStack {
  RNN(int64_t in, int64_t hidden, const RngInput& rng, const RecurrentOptions& o = {})
      : RecurrentStack("RNN", in, hidden, rng, of_kind(CellKind::rnn, o, "RNN", rng.caller())) {}
  /// @throws Error as RecurrentStack.
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {}, const Var& h0 = {}) const {
    return RecurrentStack::operator()(x, lengths, {h0, {}});
  }
};

}  // namespace gradus::nn
