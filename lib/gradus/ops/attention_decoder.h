#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// Inputs of a GRU decoder that attends with its previous state (Bahdanau et al. 2014, appendix A).
/// At each t: u = W1 s_{t-1}; c_t = additive attention(u, keys, annotations); s_t = GRU([y_t ; c_t], s_{t-1})
struct AttentionDecoderInputs {
  Var y;            ///< [T, B, E] embedded previous target words (teacher forcing)
  Var s0;           ///< [B, H] initial state
  Var keys;         ///< [S, B, A] = W2 annotations, once per sentence
  Var annotations;  ///< [S, B, D]
  Var query_weight;  ///< W1 [A, H]
  Var v;            ///< [A]
  Var weight_ih;    ///< [3H, E + D], gates r, z, n (reset after)
  Var weight_hh;    ///< [3H, H]
  Var bias_ih, bias_hh;  ///< [3H] or undefined
};

struct AttentionDecoderStates {
  Var states_contexts;  ///< [T, B, H + D]: s_t beside c_t, what the readout takes
  Tensor weights;       ///< [T, B, S] alignment, for looking at
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
