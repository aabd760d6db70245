#pragma once

#include <gradus/autograd.h>

namespace gradus {

enum class Nonlinearity { tanh, relu };

struct RnnOptions {
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  bool reverse = false;    ///< run from the last time step to the first
  Tensor lengths = {};     ///< i32 [B], real steps of each sequence; undefined: all T
  Tensor state_mask =
      {};  ///< [B, H], factor m on the state within the recurrent product, the same at all steps
           ///< (variational dropout, Gal & Ghahramani 2016); undefined: 1
};

/// One step. x [B, I], h [B, H], weight_ih [H, I], weight_hh [H, H], biases [H] or undefined -> [B, H] (Elman 1990).
///   h' = tanh(W_ih x + b_ih + W_hh (m h) + b_hh)
/// @throws Error "[rnn_cell] weight_ih must be [hidden_size, input_size]: ..." and likewise for every operand.
Var rnn_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const RnnOptions& options = {});

/// A whole sequence, fused over time: x [T, B, I], h0 [B, H] or undefined (zeros) -> all states [T, B, H].
/// At a padded step the state is carried over unchanged, so the last entry (the first, in reverse) is the final state.
Var rnn(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
        const Var& bias_hh, const RnnOptions& options = {});

namespace reference {
/// The same composed of elementary ops, a node each.
Var rnn_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const RnnOptions& options = {});
Var rnn(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
        const Var& bias_hh, const RnnOptions& options = {});
}  // namespace reference

}  // namespace gradus
