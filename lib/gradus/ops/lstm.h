#pragma once

#include <gradus/autograd.h>

namespace gradus {

struct LstmOptions {
  bool reverse = false;    ///< run from the last time step to the first
  Tensor lengths = {};     ///< i32 [B], real steps of each sequence; undefined: all T
  Tensor state_mask =
      {};  ///< [B, H], factor m on the state within the recurrent product, the same at all steps
           ///< (variational dropout, Gal & Ghahramani 2016); undefined: 1
};

/// A state, or the last one.
struct LstmState {
  Var h;  ///< [B, H]
  Var c;  ///< [B, H]
};

struct LstmStates {
  Var h;         ///< [T, B, H] of all steps
  Var c_n;       ///< [B, H] after the last real step
};

/// One step. x [B, I], state [B, H] each, weight_ih [4H, I], weight_hh [4H, H], biases [4H] or undefined; gates
/// stacked i, f, g, o (Hochreiter & Schmidhuber 1997 with the forget gate of Gers et al. 2000).
///   i = sigmoid(W_ii x + b_ii + W_hi (m h) + b_hi)      f, o likewise
///   g = tanh(W_ig x + b_ig + W_hg (m h) + b_hg)         c' = f c + i g      h' = o tanh(c')
/// @throws Error "[lstm_cell] weight_ih must be [4 hidden_size, input_size]: ..." and likewise for every operand.
LstmState lstm_cell(const Input& x, const LstmState& state, const Var& weight_ih, const Var& weight_hh,
                    const Var& bias_ih, const Var& bias_hh, const LstmOptions& options = {});

/// A whole sequence, fused over time: x [T, B, I], the state to begin with or undefined parts (zeros). At a padded step
/// both states are carried over unchanged, so the last entry of h (the first, in reverse) is the final one.
LstmStates lstm(const Input& x, const LstmState& start, const Var& weight_ih, const Var& weight_hh,
                const Var& bias_ih, const Var& bias_hh, const LstmOptions& options = {});

namespace reference {
/// The same composed of elementary ops, a node each.
LstmState lstm_cell(const Input& x, const LstmState& state, const Var& weight_ih, const Var& weight_hh,
                    const Var& bias_ih, const Var& bias_hh, const LstmOptions& options = {});
LstmStates lstm(const Input& x, const LstmState& start, const Var& weight_ih, const Var& weight_hh,
                const Var& bias_ih, const Var& bias_hh, const LstmOptions& options = {});
}  // namespace reference

}  // namespace gradus
