#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

/// h' = tanh(W_ih x + b_ih + W_hh h + b_hh) (Elman 1990). x [B, input_size], h [B, hidden_size] or undefined
/// (zeros) -> [B, hidden_size].
struct RNNCell : RecurrentCell {
  RNNCell(int64_t in, int64_t hidden, const RngInput& rng, const CellType& cell = {})
      : RecurrentCell(of_kind(CellKind::rnn, cell, "RNNCell", rng.caller()), in, hidden, rng, "RNNCell") {}
  Var operator()(const Input& x, const Var& h = {}) const { return step(x, {h, {}}).h; }
};

/// The cell over time, called as RecurrentStack. Equal to torch.nn.RNN on a packed sequence: a padded step
/// carries the state over, so that the backward direction starts at the last real token.
struct RNN : RecurrentStack {
  RNN(int64_t in, int64_t hidden, const RngInput& rng, const RecurrentOptions& o = {})
      : RecurrentStack("RNN", in, hidden, rng, of_kind(CellKind::rnn, o, "RNN", rng.caller())) {}
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {}, const Var& h0 = {}) const {
    return RecurrentStack::operator()(x, lengths, {h0, {}});
  }
};

}  // namespace gradus::nn
