#pragma once

#include <gradus/ops/layer_norm.h>
#include <gradus/ops/rnn.h>

namespace gradus {

/// One step of the layer-normalised RNN. x [B, I], h [B, H], weight_ih [H, I], weight_hh [H, H], norm [H] ->
/// [B, H] (Ba, Kiros & Hinton 2016, arXiv:1607.06450, equation 4).
///   h' = f(N(W_ih x + W_hh (m h)))      N(a) = weight (a - mean) / sqrt(var + 1e-5) + bias, over the H
/// @throws Error "[layer_norm_rnn_cell] norm must be [hidden_size] = [5]: ..." and likewise for every
/// operand.
Var layer_norm_rnn_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh,
                        const NormWeights& norm, const RnnOptions& options = {});

/// A whole sequence, fused over time: x [T, B, I], h0 [B, H] or undefined (zeros) -> all states [T, B, H].
/// At a padded step the state is carried over unchanged, so the last entry (the first, in reverse) is the
/// final state.
Var layer_norm_rnn(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
                   const NormWeights& norm, const RnnOptions& options = {});

namespace reference {
/// The same composed, a node for each elementary op.
Var layer_norm_rnn_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh,
                        const NormWeights& norm, const RnnOptions& options = {});
Var layer_norm_rnn(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
                   const NormWeights& norm, const RnnOptions& options = {});
}  // namespace reference

}  // namespace gradus
