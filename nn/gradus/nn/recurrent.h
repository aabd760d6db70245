#pragma once

#include <functional>
#include <optional>

#include <gradus/nn/recurrent_cell.h>

// What RNN, GRU and LSTM share: the walk over layers, directions and padding.

namespace gradus::nn {

/// What a recurrent module returns. T steps, B sequences, H = hidden_size, dirs = 2 when bidirectional.
struct RecurrentOutput {
  /// [T, B, dirs * H] of the last layer, [forward ; backward]; 0 at padded steps
  Var output;
  /// [num_layers * dirs, B, H] state after the last real step: layer 0 forward, backward, ...
  Var h_n;
  /// An LSTM's cells, likewise; otherwise undefined
  Var c_n;
  /// [B, H] of the last layer; after token 0 where that is read last, see `reverse`
  Var forward_final;
  /// [B, H] of the last layer, the state after token 0, of which Bahdanau et al. 2014 make s_0; undefined
  /// unless bidirectional.
  Var backward_final;
  std::vector<Var> vars() const { return {output, h_n, c_n}; }
};

/// Layers of a recurrent unit: what RNN, GRU, LSTM and Encoder are told.
struct RecurrentOptions {
  int64_t num_layers = 1;
  /// On what goes from layer to layer, under Training
  double dropout = 0;
  /// Left open: no for RNN, GRU and LSTM, as in PyTorch; yes for an encoder.
  std::optional<bool> bidirectional = {};
  /// The single direction goes from the last real step to the first, as Sutskever et al. 2014 read sources. The
  /// output stands in the order of x all the same.
  bool reverse = false;
  /// The mask of `dropout`, [B, dirs * H], is one for all steps (Gal & Ghahramani 2016).
  bool variational = false;
  /// On h_{t-1} within the recurrent product, one mask [B, H] for all steps (same paper).
  double recurrent_dropout = 0;
  /// Each layer but the first adds its input to its output (Wu et al. 2016, 3.1)
  bool residual = false;
  CellType cell = {};
  /// The composed twins instead of the fused ops: slow, for tests and readers
  bool reference = false;
};

/// The same of options: their cell as a unit of this kind.
RecurrentOptions of_kind(CellKind kind, RecurrentOptions options, const char* name, const Caller& caller);

/// What becomes of a state: `out` goes to the layer above, `next` to the state that is made of it.
struct StateUse {
  Var out, next;
};
using OnState = std::function<StateUse(const Var& h, int64_t direction, int64_t t)>;
/// Every state of a layer [B, H], by direction and step.
using LayerStates = std::vector<std::vector<Var>>;

/// Layers and directions of a recurrent module. RNN, GRU and LSTM are this with a name and a kind of unit.
struct RecurrentStack {
  /// "GRU", for errors
  const char* name;
  int64_t input_size, hidden_size;
  /// Directions decided
  RecurrentOptions options;
  /// Layer 0 forward, layer 0 backward, layer 1 forward, ...
  std::vector<RecurrentParameters> weights;

  RecurrentStack(const char* name, int64_t input_size, int64_t hidden_size, const RngInput& rng,
                 const RecurrentOptions& options = {});
  int64_t directions() const { return *options.bidirectional ? 2 : 1; }
  /// Whether a direction, 0 or 1, goes from the end to the beginning.
  bool in_reverse(int64_t direction) const { return direction == 1 || options.reverse; }
  /// x [T, B, input_size] (time-major), lengths i32 [B] or undefined (all T), start: [num_layers * dirs,
  /// B, H] or undefined (zeros) each. @throws Error when a shape does not fit or a length is outside 0 .. T.
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {},
                             const RecurrentState& start = {}) const;

  // The same state by state, for looking into it: for every layer, x = joined(layer, x, states(layer, x)).
  // Sequences of one length, from zeros, without dropout.

  /// What layer `layer` makes of x. `on_state`, where given, is called with each state as it is made and says
  /// what becomes of it. Scopes: forward_l0.j0, forward_l0.j1, ..., backward_l0.j9, ...
  /// @throws Error for a layer that does not exist.
  LayerStates states(int64_t layer, const Input& x, const OnState& on_state = {}) const;
  /// What the layer hands on, [T, B, dirs * H]: its states side by side, and x where it is residual.
  /// @throws Error for states of other directions or steps than the layer's and x's.
  Var joined(int64_t layer, const Input& x, const LayerStates& states) const;

  /// weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, ...
  void params(ParamVisitor& visit);
};

}  // namespace gradus::nn
