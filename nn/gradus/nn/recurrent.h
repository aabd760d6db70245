#pragma once

#include <gradus/nn/recurrent_cell.h>

// What RNN, GRU and LSTM share: the walk over layers, directions and padding.

namespace gradus::nn {

/// What a recurrent module returns. T steps, B sequences, H = hidden_size, dirs = 2 when bidirectional.
struct RecurrentOutput {
  Var output;          ///< [T, B, dirs * H] of the last layer, [forward ; backward]; 0 at padded steps
  Var h_n;  ///< [num_layers * dirs, B, H] state after the last real step: layer 0 forward, backward, ...
  Var c_n;             ///< an LSTM's cells, likewise; otherwise undefined
  Var forward_final;   ///< [B, H] of the last layer
  Var backward_final;  ///< [B, H] of the last layer, the state after token 0, of which Bahdanau et al. 2014 make
                       ///< s_0; undefined unless bidirectional
  std::vector<Var> vars() const { return {output, h_n, c_n}; }  ///< for gradcheck
};

struct RecurrentShape {
  const char* name;  ///< "GRU", for errors
  CellType cell;
  int64_t input_size, hidden_size;
  int64_t num_layers = 1;
  bool bias = true;
  bool bidirectional = false;
  double dropout = 0;            ///< on what goes from layer to layer, under Training
  bool variational =
      false;  ///< that dropout's mask [B, dirs * H] is one for all steps (Gal & Ghahramani 2016)
  double recurrent_dropout =
      0;  ///< on h_{t-1} within the recurrent product, one mask [B, H] for all steps (same paper)
  bool residual = false;  ///< each layer but the first adds its input to its output (Wu et al. 2016, 3.1)
  bool reference = false;        ///< the composed twins instead of the fused ops: slow, for tests and readers
};

/// Layers and directions of a recurrent module. RNN, GRU and LSTM are this with the unit's options spelt out.
struct RecurrentStack {
  RecurrentShape shape;
  std::vector<RecurrentParameters> weights;  ///< layer 0 forward, layer 0 backward, layer 1 forward, ...

  RecurrentStack(const RecurrentShape& shape, Rng& rng, Caller caller = Caller::current());
  int64_t directions() const { return shape.bidirectional ? 2 : 1; }
  /// x [T, B, input_size] (time-major), lengths i32 [B] or undefined (all T), start: [num_layers * dirs, B, H] or
  /// undefined (zeros) each. @throws Error when a shape does not fit or a length is outside 0 .. T.
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {},
                             const RecurrentState& start = {}) const;
  /// weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, ...
  void params(ParamVisitor& visit);
};

}  // namespace gradus::nn
