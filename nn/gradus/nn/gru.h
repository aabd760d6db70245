#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

struct GRUCellOptions {
  bool bias = true;
  bool reset_after = true;  ///< PyTorch and cuDNN; false: Cho v3, reset before the product
  bool bahdanau = false;    ///< Bahdanau et al. 2014: reset before, z weights the new state, no bias_hh
  bool layer_norm = false;  ///< Ba et al. 2016, equations in gradus/ops/gru.h
};

/// One step of a GRU (Cho et al. 2014), gates r, z, n as in PyTorch; equations in gradus/ops/gru.h.
/// x [B, input_size], h [B, hidden_size] or undefined (zeros) -> [B, hidden_size].
struct GRUCell : RecurrentCell {
  GRUCell(int64_t input_size, int64_t hidden_size, Rng& rng, const GRUCellOptions& options = {},
          Caller caller = Caller::current());
  Var operator()(const Input& x, const Var& h = {}) const {
    At at(x.caller());
    return step(x, {h, {}}).h;
  }
};

struct GRUOptions {
  int64_t num_layers = 1;
  bool bias = true;
  double dropout = 0;  ///< on the output of each layer but the last, under Training
  bool bidirectional = false;
  bool reset_after = true;       ///< as in GRUCellOptions
  bool bahdanau = false;
  bool variational = false;      ///< dropout with one mask for all steps (Gal & Ghahramani 2016)
  double recurrent_dropout = 0;  ///< on h within the recurrent product, one mask for all steps (same paper)
  bool residual = false;         ///< each layer but the first adds its input to its output
  bool layer_norm = false;       ///< Ba et al. 2016, equations in gradus/ops/gru.h
  bool reference = false;  ///< run the composed twin instead of the fused op: slow, for tests and readers
};

/// A GRU over time: x [T, B, input_size] (time-major), lengths i32 [B] or undefined (all T), h0
/// [num_layers * dirs, B, hidden_size] or undefined (zeros). Equal to torch.nn.GRU on a packed sequence.
struct GRU {
  RecurrentStack stack;

  GRU(int64_t input_size, int64_t hidden_size, Rng& rng, const GRUOptions& options = {},
      Caller caller = Caller::current());
  /// @throws Error when a shape does not fit or a length is outside 0 .. T.
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {}, const Var& h0 = {}) const;
  void params(ParamVisitor& visit) { stack.params(visit); }
};

}  // namespace gradus::nn
