#pragma once

#include <gradus/autograd.h>
#include <gradus/ops/recurrent_weights.h>

namespace gradus {

struct LstmOptions {
  /// Run from the last time step to the first.
  bool reverse = false;
  /// i32 [B], real steps of each sequence; undefined: all T.
  Tensor lengths = {};
  /// [B, H], factor m on h in the recurrent product of all steps (Gal & Ghahramani 2016); undefined: 1.
  Tensor state_mask = {};
};

/// A state, or the last one: [B, H] each.
struct LstmState {
  Var h, c;
  std::vector<Var> vars() const { return {h, c}; }
};

struct LstmStates {
  /// [T, B, H], of all steps
  Var h;
  /// [B, H], after the last real step
  Var c_n;
};

/// One step. x [B, I], state [B, H] each, weights with G = 4 (Hochreiter & Schmidhuber 1997 with the forget
/// gate of Gers et al. 2000).
///   i = sigmoid(W_ii x + b_ii + W_hi (m h) + b_hi)      f, o likewise
///   g = tanh(W_ig x + b_ig + W_hg (m h) + b_hg)         c' = f c + i g      h' = o tanh(c')
/// Layer-normalised (Ba et al. 2016, supplement, equations 20 to 22), norm_ih and norm_hh [4H], norm_c [H],
/// N(a) = weight (a - mean) / sqrt(var + 1e-5) + bias over its row; the paper's b is the sum of two offsets.
///   (i, f, g, o) = N_ih(W_ih x) + N_hh(W_hh (m h))
///   c' = s(f) c + s(i) tanh(g)      h' = s(o) tanh(N_c(c')), s the logistic function
/// @throws Error "[lstm_cell] weight_ih must be [4 hidden_size, input_size]: ..." and so for every operand.
LstmState lstm_cell(const Input& x, const LstmState& state, const RecurrentWeights& weights,
                    const LstmOptions& options = {});

/// A whole sequence, fused over time: x [T, B, I], the state to begin with or undefined parts (zeros). Padded
/// steps carry both states over unchanged: the last entry of h (the first, in reverse) is the final one.
LstmStates lstm(const Input& x, const LstmState& start, const RecurrentWeights& weights,
                const LstmOptions& options = {});

namespace reference {
/// The same composed of elementary ops, a node each.
LstmState lstm_cell(const Input& x, const LstmState& state, const RecurrentWeights& weights,
                    const LstmOptions& options = {});
LstmStates lstm(const Input& x, const LstmState& start, const RecurrentWeights& weights,
                const LstmOptions& options = {});
}  // namespace reference

}  // namespace gradus
