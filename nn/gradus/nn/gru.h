#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

struct GRUCellOptions {
  bool bias = true;
  bool reset_after = true;  ///< PyTorch and cuDNN; false: Cho v3 and Bahdanau, reset before the product
};

/// One step of a GRU (Cho et al. 2014), gates r, z, n as in PyTorch; equations in gradus/ops/gru.h.
/// x [B, input_size], h [B, hidden_size] or undefined (zeros) -> [B, hidden_size].
struct GRUCell {
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;
  bool reset_after;

  GRUCell(int64_t input_size, int64_t hidden_size, Rng& rng, const GRUCellOptions& options = {});
  Var operator()(const Var& x, const Var& h = {}) const;
  void params(ParamVisitor& visit);
};

struct GRUOptions {
  int64_t num_layers = 1;
  bool bias = true;
  double dropout = 0;  ///< on the output of each layer but the last, under Training
  bool bidirectional = false;
  bool reset_after = true;
  bool reference = false;  ///< run the composed twin instead of the fused op: slow, for tests and readers
};

/// A GRU over time: x [T, B, input_size] (time-major), lengths i32 [B] or undefined (all T), h0
/// [num_layers * dirs, B, hidden_size] or undefined (zeros). Equal to torch.nn.GRU on a packed sequence.
struct GRU {
  RecurrentStack stack;
  bool reset_after, reference;

  GRU(int64_t input_size, int64_t hidden_size, Rng& rng, const GRUOptions& options = {});
  /// @throws Error when a shape does not fit or a length is outside 0 .. T.
  RecurrentOutput operator()(const Var& x, const Tensor& lengths = {}, const Var& h0 = {}) const;
  void params(ParamVisitor& visit);
};

}  // namespace gradus::nn
