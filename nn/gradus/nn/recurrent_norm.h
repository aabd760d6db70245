#pragma once

#include <gradus/nn/recurrent_cell.h>

// Layer-normalised units (Ba, Kiros & Hinton 2016, arXiv:1607.06450), N(.) with a gain and an offset of its
// own at each place, composed of elementary ops. The offsets are the biases; there are no others.
//
//   rnn   h' = f(N(W_ih x + W_hh h))                                (the paper's equation 4)
//   lstm  i, f, g, o from N_ih(W_ih x) + N_hh(W_hh h), each over all 4H
//         c' = f c + i g,  h' = o tanh(N_c(c'))
//   gru   r, z from N_ih(W_ih x) + N_hh(W_hh h), each over their 2H
//         n = tanh(N_ih(W_in x) + r N_hh(W_hn h)), each over its H, or, reset before,
//         n = tanh(N_ih(W_in x) + N_hh(W_hn (r h)));  h' as in the unit without
//
// Gains and offsets are kept as one vector for each product: weight_ln_ih, bias_ln_ih [G H], weight_ln_hh,
// bias_ln_hh, and weight_ln_c, bias_ln_c [H] for the LSTM's cell. The RNN has one, weight_ln and bias_ln [H].

namespace gradus::nn {

/// What depends on x alone, x [..., I] -> [..., G H]: one product for all steps.
Var normalised_input(const CellType& type, const RecurrentWeights& w, const Var& x);

/// One step from its input's part [B, G H]. state.h is defined; state_mask [B, H] or undefined.
RecurrentState normalised_step(const CellType& type, const RecurrentWeights& w, const Var& input,
                               const RecurrentState& state, const Tensor& state_mask);

DirectionStates normalised_over_time(const CellType& type, const RecurrentWeights& w, const Var& x,
                                     const RecurrentState& start, const DirectionOptions& options);

}  // namespace gradus::nn
