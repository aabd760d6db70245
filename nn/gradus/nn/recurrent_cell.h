#pragma once

#include <string>

#include <gradus/nn/module.h>
#include <gradus/ops/lstm.h>
#include <gradus/ops/rnn.h>
#include <gradus/random.h>

// One step, apart from layers, directions and time: which unit, its weights, and the two ways to run it.

namespace gradus::nn {

using gradus::Nonlinearity;

enum class CellKind { rnn, gru, lstm };

/// A unit with its options. Equations: gradus/ops/rnn.h, gru.h, lstm.h; layer_norm's there too.
struct CellType {
  /// GRU, LSTM, RNN and their cells set it themselves
  CellKind kind = CellKind::gru;
  /// false: no bias_ih, no bias_hh, and under layer_norm no offsets
  bool bias = true;
  /// Of an rnn
  Nonlinearity nonlinearity = Nonlinearity::tanh;
  /// Of a gru. True: the reset gate acts after the product, as in PyTorch and cuDNN; false: before it (Cho v3).
  bool reset_after = true;
  /// The gru of Bahdanau et al. 2014: reset before, z weights the new state, no bias_hh.
  bool bahdanau = false;
  /// Of an lstm: added to the forget gate's bias_ih at the start; 1 in Jozefowicz et al. 2015.
  double forget_bias = 0;
  /// Ba et al. 2016
  bool layer_norm = false;

  bool operator==(const CellType&) const = default;
  int64_t gates() const { return kind == CellKind::rnn ? 1 : kind == CellKind::gru ? 3 : 4; }
  /// The unit that the fused attention decoder knows: reset after, biases, nothing else.
  bool is_plain_gru() const { return *this == CellType{}; }
  /// Those that packed decoding knows: this one, and the same with layer_norm.
  bool is_packed_gru() const { return *this == CellType{.layer_norm = layer_norm}; }
};

/// gru, gru-reset-before, gru-bahdanau, lstm (forget bias 1), rnn, rnn-relu.
/// @throws Error "[cell_type] unknown cell \"gur\": one of ..."
CellType cell_type(const std::string& name);
const std::vector<std::string>& cell_names();
/// The inverse, with or without layer_norm. @throws Error for a unit that has no name.
std::string cell_name(CellType type);
/// A type whose kind was left open, as a unit of this kind: what a GRUCell or an LSTM makes of its options.
/// @throws Error "[LSTM] ..." when an option of another kind is set.
CellType of_kind(CellKind kind, CellType type, const char* name, const Caller& caller);

/// h [B, H], and c [B, H] of an LSTM; undefined parts are zeros.
using RecurrentState = LstmState;

/// One direction of one layer, G gates stacked: 1 (RNN), 3 (GRU: r, z, n), 4 (LSTM: i, f, g, o).
struct RecurrentParameters {
  /// [G H, I] and [G H, H]
  Parameter weight_ih, weight_hh;
  /// [G H]; undefined without bias, under layer_norm, whose offsets stand in, and bias_hh in Bahdanau's unit
  Parameter bias_ih, bias_hh;
  /// Gain and offset of a layer normalisation. rnn: one [H]; gru: ih and hh [3 H]; lstm: ih and hh [4 H], c
  /// [H]. The offsets are the unit's biases; there are no others.
  struct Norm {
    Parameter weight, bias;
    operator NormWeights() const { return {weight, bias}; }
  };
  std::vector<Norm> norms;

  /// As the ops take them.
  operator RecurrentWeights() const;

  /// All from U(-1/sqrt(H), 1/sqrt(H)), as PyTorch; gains 1, offsets 0. `name` is for errors.
  RecurrentParameters(const CellType& type, int64_t input_size, int64_t hidden_size, const RngInput& rng,
                      const char* name = "RecurrentParameters");
  int64_t hidden_size() const { return weight_hh.shape()[1]; }
  /// weight_ih, weight_hh, bias_ih, bias_hh, then weight_ln_ih, bias_ln_ih, weight_ln_hh, ..., weight_ln_c, or
  /// of the RNN weight_ln and bias_ln, each with the suffix.
  void params(ParamVisitor& visit, const std::string& suffix);
};

struct DirectionOptions {
  bool reverse = false;
  /// i32 [B] or undefined (all T)
  Tensor lengths = {};
  /// [B, H], the same at all steps, on the state within the recurrent product
  Tensor state_mask = {};
  bool reference = false;
};

/// All states of one direction, carried over at padded steps; no cell but of an LSTM.
using DirectionStates = LstmStates;

/// x [T, B, I] -> all states.
DirectionStates run_over_time(const CellType& type, const RecurrentParameters& w, const Input& x,
                              const RecurrentState& start, const DirectionOptions& options);

/// One step of any unit, with its weights: what a decoder holds. x [B, input_size].
struct RecurrentCell : RecurrentParameters {
  CellType type;

  RecurrentCell(const CellType& t, int64_t input_size, int64_t hidden_size, const RngInput& rng,
                const char* name = "RecurrentCell")
      : RecurrentParameters(t, input_size, hidden_size, rng, name), type(t) {}
  /// Undefined parts of the state are zeros.
  RecurrentState step(const Input& x, const RecurrentState& state = {}) const;
  /// The cell over a whole sequence x [T, B, input_size], fused where the unit is: all h [T, B, H]. With
  /// lengths (i32 [B]) the state is carried over behind them.
  Var over_time(const Input& x, const RecurrentState& start, const Tensor& lengths = {}) const {
    return run_over_time(type, *this, x, start, {.lengths = lengths}).h;
  }
  void params(ParamVisitor& visit) { RecurrentParameters::params(visit, ""); }
};

}  // namespace gradus::nn
