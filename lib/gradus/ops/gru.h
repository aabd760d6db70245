#pragma once

#include <gradus/autograd.h>

namespace gradus {

struct GruOptions {
  bool reset_after = true;  ///< PyTorch and cuDNN; false: Cho v3 and Bahdanau, reset before the product
  bool update_selects_new =
      false;                ///< Bahdanau: h' = (1 - z) h + z n; false (Cho, PyTorch): z weights the old state
  bool reverse = false;     ///< run from the last time step to the first
  Tensor lengths = {};      ///< i32 [B], real steps of each sequence; undefined: all T
  Tensor state_mask =
      {};  ///< [B, H], factor on h within the recurrent products, the same at all steps (variational
           ///< dropout, Gal & Ghahramani 2016); undefined: 1
};

/// One step. x [B, I], h [B, H], weight_ih [3H, I], weight_hh [3H, H], biases [3H] or undefined -> [B, H].
///   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)      z likewise
///   n = tanh(W_in x + b_in + r (W_hn h + b_hn))     h' = (1 - z) n + z h
Var gru_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const GruOptions& options = {});

/// A whole sequence, fused over time: x [T, B, I], h0 [B, H] or undefined (zeros) -> all states [T, B, H].
/// At a padded step the state is carried over unchanged, so the last entry (the first, in reverse) is the final state.
Var gru(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
        const Var& bias_hh, const GruOptions& options = {});

namespace reference {
/// The same composed of elementary ops, a node each.
Var gru_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const GruOptions& options = {});
Var gru(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
        const Var& bias_hh, const GruOptions& options = {});
}  // namespace reference

}  // namespace gradus
