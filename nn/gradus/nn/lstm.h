#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

struct LSTMCellOptions {
  bool bias = true;
  double forget_bias = 0;   ///< added to the forget gate's bias_ih at the start (Jozefowicz et al. 2015: 1)
  bool layer_norm = false;  ///< Ba et al. 2016, equations in gradus/ops/lstm.h
};

/// One step of an LSTM (Hochreiter & Schmidhuber 1997), gates i, f, g, o as in PyTorch; equations in gradus/ops/lstm.h.
/// x [B, input_size], h and c [B, hidden_size] or undefined (zeros) -> both after the step.
struct LSTMCell : RecurrentCell {
  LSTMCell(int64_t input_size, int64_t hidden_size, Rng& rng, const LSTMCellOptions& options = {},
           Caller caller = Caller::current());
  RecurrentState operator()(const Input& x, const Var& h = {}, const Var& c = {}) const {
    At at(x.caller());
    return step(x, {h, c});
  }
};

struct LSTMOptions {
  int64_t num_layers = 1;
  bool bias = true;
  double dropout = 0;  ///< on the output of each layer but the last, under Training
  bool bidirectional = false;
  double forget_bias = 0;        ///< as in LSTMCellOptions
  bool variational = false;      ///< dropout with one mask for all steps (Gal & Ghahramani 2016)
  double recurrent_dropout = 0;  ///< on h within the recurrent product, one mask for all steps (same paper)
  bool residual = false;         ///< each layer but the first adds its input to its output
  bool layer_norm = false;       ///< Ba et al. 2016, equations in gradus/ops/lstm.h
  bool reference = false;  ///< run the composed twin instead of the fused op: slow, for tests and readers
};

/// An LSTM over time: x [T, B, input_size] (time-major), lengths i32 [B] or undefined (all T), h0 and c0
/// [num_layers * dirs, B, hidden_size] or undefined (zeros). Equal to torch.nn.LSTM on a packed sequence.
struct LSTM {
  RecurrentStack stack;

  LSTM(int64_t input_size, int64_t hidden_size, Rng& rng, const LSTMOptions& options = {},
       Caller caller = Caller::current());
  /// @throws Error when a shape does not fit or a length is outside 0 .. T.
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {}, const Var& h0 = {},
                             const Var& c0 = {}) const;
  void params(ParamVisitor& visit) { stack.params(visit); }
};

}  // namespace gradus::nn
