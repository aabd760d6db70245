#pragma once

#include <gradus/ops/layer_norm.h>

namespace gradus {

/// The weights of a recurrent unit with I inputs and H units, G gates stacked: 1 (rnn), 3 (gru: r, z, n) or
/// 4 (lstm: i, f, g, o).
struct RecurrentWeights {
  /// [G H, I], times the input.
  Var ih;
  /// [G H, H], times the state.
  Var hh;
  /// [G H] each; undefined: none.
  Var bias_ih = {}, bias_hh = {};
  /// Layer normalisations (Ba, Kiros & Hinton 2016, arXiv:1607.06450); undefined: none. With them the unit
  /// has no biases, their offsets stand in. Which ones, and what each is over, stands above each unit.
  NormWeights norm_ih = {}, norm_hh = {}, norm_c = {};

  bool normalised() const {
    for (const NormWeights* norm : {&norm_ih, &norm_hh, &norm_c})
      if (norm->weight.defined() || norm->bias.defined()) return true;
    return false;
  }
};

}  // namespace gradus
