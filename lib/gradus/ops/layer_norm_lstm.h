#pragma once

#include <gradus/ops/layer_norm.h>
#include <gradus/ops/lstm.h>

namespace gradus {

/// The three normalisations of the unit below.
struct LstmNorms {
  NormWeights ih;  ///< [4H], of W_ih x
  NormWeights hh;  ///< [4H], of W_hh h
  NormWeights c;   ///< [H], of the new cell on its way to h
};

/// One step of the layer-normalised LSTM. x [B, I], state [B, H] each, weight_ih [4H, I], weight_hh [4H, H];
/// gates stacked i, f, g, o (Ba, Kiros & Hinton 2016, arXiv:1607.06450, supplement, equations 20 to 22). Each
/// N(a) = weight (a - mean) / sqrt(var + 1e-5) + bias is over its whole row; the paper's b is the sum of the
/// first two biases.
///   (i, f, g, o) = N_ih(W_ih x) + N_hh(W_hh (m h)), each N over all 4H
///   c' = s(f) c + s(i) tanh(g)      h' = s(o) tanh(N_c(c')), s the logistic function
/// @throws Error "[layer_norm_lstm_cell] norm_hh must be [4 hidden_size] = [20]: ..." and likewise for every
/// operand.
LstmState layer_norm_lstm_cell(const Input& x, const LstmState& state, const Var& weight_ih,
                               const Var& weight_hh, const LstmNorms& norms, const LstmOptions& options = {});

/// A whole sequence, fused over time: x [T, B, I], the state to begin with or undefined parts (zeros). At a
/// padded step both states are carried over unchanged, so the last entry of h (the first, in reverse) is the
/// final one.
LstmStates layer_norm_lstm(const Input& x, const LstmState& start, const Var& weight_ih, const Var& weight_hh,
                           const LstmNorms& norms, const LstmOptions& options = {});

namespace reference {
/// The same composed, a node for each elementary op.
LstmState layer_norm_lstm_cell(const Input& x, const LstmState& state, const Var& weight_ih,
                               const Var& weight_hh, const LstmNorms& norms, const LstmOptions& options = {});
LstmStates layer_norm_lstm(const Input& x, const LstmState& start, const Var& weight_ih, const Var& weight_hh,
                           const LstmNorms& norms, const LstmOptions& options = {});
}  // namespace reference

}  // namespace gradus
