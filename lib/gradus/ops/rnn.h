#pragma once

#include <gradus/autograd.h>
#include <gradus/ops/recurrent_weights.h>

namespace gradus {

enum class Nonlinearity { tanh, relu };

struct RnnOptions {
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  /// Run from the last time step to the first.
  bool reverse = false;
  /// i32 [B], real steps of each sequence; undefined: all T.
  Tensor lengths = {};
  /// [B, H], factor m on h in the recurrent product of all steps (Gal & Ghahramani 2016); undefined: 1.
  Tensor state_mask = {};
};

/// One step. x [B, I], h [B, H], weights with G = 1 -> [B, H] (Elman 1990).
///   h' = f(W_ih x + b_ih + W_hh (m h) + b_hh)      f = tanh or relu
/// Layer-normalised (Ba et al. 2016, equation 4), norm_ih [H], the only one, over the H of the sum:
///   h' = f(N(W_ih x + W_hh (m h)))      N(a) = weight (a - mean) / sqrt(var + 1e-5) + bias
/// @throws Error "[rnn_cell] weight_ih must be [hidden_size, input_size]: ..." and so for every operand.
Var rnn_cell(const Input& x, const Var& h, const RecurrentWeights& weights, const RnnOptions& options = {});

/// A whole sequence, fused over time: x [T, B, I], h0 [B, H] or undefined (zeros) -> all states [T, B, H].
/// A padded step carries the state over unchanged: the last entry (the first, in reverse) is the final one.
Var rnn(const Input& x, const Var& h0, const RecurrentWeights& weights, const RnnOptions& options = {});

namespace reference {
/// The same composed of elementary ops, a node each.
Var rnn_cell(const Input& x, const Var& h, const RecurrentWeights& weights, const RnnOptions& options = {});
Var rnn(const Input& x, const Var& h0, const RecurrentWeights& weights, const RnnOptions& options = {});
}  // namespace reference

}  // namespace gradus
