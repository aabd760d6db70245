#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

struct RNNCellOptions {
  bool bias = true;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  bool layer_norm = false;  ///< Ba et al. 2016, equations in gradus/ops/rnn.h
};

/// h' = tanh(W_ih x + b_ih + W_hh h + b_hh) (Elman 1990). x [B, input_size], h [B, hidden_size] or undefined
/// (zeros) -> [B, hidden_size].
struct RNNCell : RecurrentCell {
  RNNCell(int64_t input_size, int64_t hidden_size, Rng& rng, const RNNCellOptions& options = {},
          Caller caller = Caller::current());
  Var operator()(const Input& x, const Var& h = {}) const {
    At at(x.caller());
    return step(x, {h, {}}).h;
  }
};

struct RNNOptions {
  int64_t num_layers = 1;
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  bool bias = true;
  double dropout = 0;  ///< on the output of each layer but the last, under Training
  bool bidirectional = false;
  bool variational = false;      ///< dropout with one mask for all steps (Gal & Ghahramani 2016)
  double recurrent_dropout = 0;  ///< on h within the recurrent product, one mask for all steps (same paper)
  bool residual = false;         ///< each layer but the first adds its input to its output
  bool layer_norm = false;       ///< Ba et al. 2016, equations in gradus/ops/rnn.h
  bool reference = false;  ///< run the composed twin instead of the fused op: slow, for tests and readers
};

/// The cell over time: x [T, B, input_size] (time-major), lengths i32 [B] or undefined (all T), h0
/// [num_layers * dirs, B, hidden_size] or undefined (zeros). Equal to torch.nn.RNN on a packed sequence: a padded step
/// carries the state over, so that the backward direction starts at the last real token.
struct RNN {
  RecurrentStack stack;

  RNN(int64_t input_size, int64_t hidden_size, Rng& rng, const RNNOptions& options = {},
      Caller caller = Caller::current());
  /// @throws Error when a shape does not fit or a length is outside 0 .. T.
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {}, const Var& h0 = {}) const;
  void params(ParamVisitor& visit) { stack.params(visit); }
};

}  // namespace gradus::nn
