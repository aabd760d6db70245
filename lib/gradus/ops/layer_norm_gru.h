#pragma once

#include <gradus/ops/gru.h>
#include <gradus/ops/layer_norm.h>

namespace gradus {

/// The normalisations of the unit below. r and z are normalised as one row of 2H, n as one of H, with the
/// entries of one pair of vectors.
struct GruNorms {
  NormWeights ih;  ///< [3H], of W_ih x
  NormWeights hh;  ///< [3H], of W_hh h
};

/// One step of the layer-normalised GRU. x [B, I], h [B, H], weight_ih [3H, I], weight_hh [3H, H] -> [B, H],
/// blocks r, z, n (Ba, Kiros & Hinton 2016, arXiv:1607.06450, supplement, the GRU of the order embeddings).
/// Each N(a) = weight (a - mean) / sqrt(var + 1e-5) + bias.
///   (r, z) = sigmoid(N_ih(W_i{r,z} x) + N_hh(W_h{r,z} (m h)))
///   n = tanh(N_ih(W_in x) + r N_hh(W_hn (m h)))      h' = (1 - z) n + z h
/// The paper lets z weight the new state, as options.update_selects_new does; reset_after = false has
///   n = tanh(N_ih(W_in x) + N_hh(W_hn (r m h)))
/// @throws Error "[layer_norm_gru_cell] norm_hh must be [3 hidden_size] = [15]: ..." and likewise for every
/// operand.
Var layer_norm_gru_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh,
                        const GruNorms& norms, const GruOptions& options = {});

/// A whole sequence, fused over time: x [T, B, I], h0 [B, H] or undefined (zeros) -> all states [T, B, H].
/// At a padded step the state is carried over unchanged, so the last entry (the first, in reverse) is the
/// final state.
Var layer_norm_gru(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
                   const GruNorms& norms, const GruOptions& options = {});

namespace reference {
/// The same composed, a node for each elementary op.
Var layer_norm_gru_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh,
                        const GruNorms& norms, const GruOptions& options = {});
Var layer_norm_gru(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
                   const GruNorms& norms, const GruOptions& options = {});
}  // namespace reference

}  // namespace gradus
