#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

enum class Nonlinearity { tanh, relu };

struct RNNCellOptions {
  bool bias = true;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
};

/// h' = tanh(W_ih x + b_ih + W_hh h + b_hh) (Elman 1990). x [B, input_size], h [B, hidden_size] or undefined
/// (zeros) -> [B, hidden_size].
struct RNNCell {
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;
  Nonlinearity nonlinearity;

  RNNCell(int64_t input_size, int64_t hidden_size, Rng& rng, const RNNCellOptions& options = {});
  Var operator()(const Var& x, const Var& h = {}) const;
  void params(ParamVisitor& visit);
};

struct RNNOptions {
  int64_t num_layers = 1;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  bool bias = true;
  double dropout = 0;  ///< on the output of each layer but the last, under Training
  bool bidirectional = false;
};

/// The cell over time: x [T, B, input_size] (time-major), lengths i32 [B] or undefined (all T), h0
/// [num_layers * dirs, B, hidden_size] or undefined (zeros). Composed of elementary ops; a padded step
/// carries the state over, so that the backward direction starts at the last real token.
struct RNN {
  RecurrentStack stack;
  Nonlinearity nonlinearity;

  RNN(int64_t input_size, int64_t hidden_size, Rng& rng, const RNNOptions& options = {});
  /// @throws Error when a shape does not fit or a length is outside 0 .. T.
  RecurrentOutput operator()(const Var& x, const Tensor& lengths = {}, const Var& h0 = {}) const;
  void params(ParamVisitor& visit);
};

}  // namespace gradus::nn
