#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// Inputs of a GRU decoder that attends with its previous state (Bahdanau et al. 2014, appendix A).
/// At each t: u = W1 s_{t-1}; c_t = additive attention(u, keys, annotations); s_t = GRU([y_t ; c_t], s_{t-1})
struct AttentionDecoderInputs {
  /// [T, B, E], embedded previous target words (teacher forcing)
  Var y;
  /// [B, H], initial state
  Var s0;
  /// [S, B, A], W2 annotations, once per sentence
  Var keys;
  /// [S, B, D]
  Var annotations;
  /// [A, H], W1
  Var query_weight;
  /// [A]
  Var v;
  /// [3H, E + D], gates r, z, n (reset after)
  Var weight_ih;
  /// [3H, H]
  Var weight_hh;
  /// [3H] each, or undefined
  Var bias_ih, bias_hh;
};

struct AttentionDecoderStates {
  /// [T, B, H + D], s_t beside c_t: what the readout takes
  Var states_contexts;
  /// [T, B, S], alignment, for looking at
  Tensor weights;
};

/// Teacher forcing over a whole target, as one node with a hand-written backward. The products that do not
/// depend on the recurrence, and the gradients of the weights, are computed for all time steps at once.
/// @param lengths i32 [B] in 0 .. T, steps of each target without padding; undefined: all T. Padded steps cost
/// nothing: the state is carried over, context and weights are 0.
AttentionDecoderStates attention_decoder(const AttentionDecoderInputs& in, const Tensor& mask = {},
                                         const Tensor& lengths = {}, Caller caller = Caller::current());

namespace reference {
/// The same, step by step, of elementary ops.
AttentionDecoderStates attention_decoder(const AttentionDecoderInputs& in, const Tensor& mask = {},
                                         const Tensor& lengths = {}, Caller caller = Caller::current());
}  // namespace reference

}  // namespace gradus
