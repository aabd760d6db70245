#pragma once

#include <gradus/autograd.h>
#include <gradus/ops/recurrent_weights.h>

namespace gradus {

struct GruOptions {
  /// PyTorch and cuDNN; false: Cho v3 and Bahdanau, reset before the product.
  bool reset_after = true;
  /// Bahdanau: h' = (1 - z) h + z n; false (Cho, PyTorch): z weights the old state.
  bool update_selects_new = false;
  /// Run from the last time step to the first.
  bool reverse = false;
  /// i32 [B], real steps of each sequence; undefined: all T.
  Tensor lengths = {};
  /// [B, H], factor m on h in the recurrent product of all steps (Gal & Ghahramani 2016); undefined: 1.
  Tensor state_mask = {};
};

/// One step. x [B, I], h [B, H], weights with G = 3 -> [B, H].
///   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)      z likewise
///   n = tanh(W_in x + b_in + r (W_hn h + b_hn))     h' = (1 - z) n + z h
/// Layer-normalised (Ba et al. 2016, supplement, the GRU of the order embeddings), norm_ih and norm_hh [3H]:
/// N(a) = weight (a - mean) / sqrt(var + 1e-5) + bias, over r and z as one row of 2H, over n as one of H.
///   (r, z) = sigmoid(N_ih(W_i{r,z} x) + N_hh(W_h{r,z} (m h)))
///   n = tanh(N_ih(W_in x) + r N_hh(W_hn (m h)))     h' = (1 - z) n + z h
/// The paper lets z weight the new state, as options.update_selects_new does; reset_after = false has
///   n = tanh(N_ih(W_in x) + N_hh(W_hn (r m h)))
/// @throws Error "[gru_cell] weight_ih must be [3 hidden_size, input_size]: ..." and so for every operand.
Var gru_cell(const Input& x, const Var& h, const RecurrentWeights& weights, const GruOptions& options = {});

/// A whole sequence, fused over time: x [T, B, I], h0 [B, H] or undefined (zeros) -> all states [T, B, H].
/// A padded step carries the state over unchanged: the last entry (the first, in reverse) is the final one.
Var gru(const Input& x, const Var& h0, const RecurrentWeights& weights, const GruOptions& options = {});

namespace reference {
/// The same composed of elementary ops, a node each.
Var gru_cell(const Input& x, const Var& h, const RecurrentWeights& weights, const GruOptions& options = {});
Var gru(const Input& x, const Var& h0, const RecurrentWeights& weights, const GruOptions& options = {});
}  // namespace reference

}  // namespace gradus
