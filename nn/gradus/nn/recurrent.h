#pragma once

#include <functional>

#include <gradus/nn/module.h>
#include <gradus/random.h>

// What RNN and GRU share: weights per layer and direction, and the walk over layers, directions and padding.

namespace gradus::nn {

/// What a recurrent module returns. T steps, B sequences, H = hidden_size, dirs = 2 when bidirectional.
struct RecurrentOutput {
  Var output;          ///< [T, B, dirs * H] of the last layer, [forward ; backward]; 0 at padded steps
  Var h_n;             ///< [num_layers * dirs, B, H] state after the last real step: layer 0 forward, backward, ...
  Var forward_final;   ///< [B, H] of the last layer
  Var backward_final;  ///< [B, H] of the last layer, the state after token 0, of which Bahdanau et al. 2014 make
                       ///< s_0; undefined unless bidirectional
  std::vector<Var> vars() const { return {output, h_n}; }  ///< for gradcheck
};

/// One direction of one layer. G = 1 (RNN) or 3 (GRU: gates r, z, n stacked).
struct RecurrentWeights {
  Parameter weight_ih;  ///< [G H, I]
  Parameter weight_hh;  ///< [G H, H]
  Parameter bias_ih;    ///< [G H] or undefined
  Parameter bias_hh;    ///< [G H] or undefined

  RecurrentWeights() = default;
  /// All from U(-1/sqrt(H), 1/sqrt(H)), as PyTorch.
  RecurrentWeights(int64_t gates, int64_t input_size, int64_t hidden_size, bool bias, Rng& rng);
};

struct RecurrentShape {
  const char* name;  ///< "GRU", for errors
  int64_t gates, input_size, hidden_size;
  int64_t num_layers = 1;
  bool bias = true;
  double dropout = 0;  ///< between layers, under Training
  bool bidirectional = false;
};

/// Layers and directions of a recurrent module, without the cell.
struct RecurrentStack {
  /// All states [T, B, H] of one direction, carried over at padded steps. x [T, B, I], h0 [B, H] or
  /// undefined.
  using Run = std::function<Var(const Var& x, const Var& h0, const RecurrentWeights& weights, bool reverse)>;

  RecurrentShape shape;
  std::vector<RecurrentWeights> weights;  ///< layer 0 forward, layer 0 backward, layer 1 forward, ...

  RecurrentStack(const RecurrentShape& shape, Rng& rng);
  int64_t directions() const { return shape.bidirectional ? 2 : 1; }
  RecurrentOutput operator()(const Run& run, const Var& x, const Tensor& lengths, const Var& h0) const;
  /// weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, ...
  void params(ParamVisitor& visit);
};

/// [forward ; backward] along the last axis with zeros at padded steps, in one pass. forward [T, B, H],
/// backward the same or undefined, lengths i32 [B] or undefined -> [T, B, H or 2H].
Var join_directions(const Var& forward, const Var& backward, const Tensor& lengths);

}  // namespace gradus::nn
