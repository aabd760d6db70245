#pragma once

// Internal: what the cases of rnn, gru and lstm share, at T = 4, B = 3, I = 2, H = 5. Not installed.

#include <gradus/op_case.h>
#include <gradus/ops/recurrent_weights.h>

namespace gradus::cases {

/// Weights from a case's inputs, from input k on: weight_ih, weight_hh, then both biases, or of a normalised
/// unit gain and offset of so many norms.
inline RecurrentWeights weights_from(const std::vector<Var>& in, size_t k, int norms = 0) {
  RecurrentWeights w{in[k], in[k + 1]};
  if (norms == 0) w.bias_ih = in[k + 2], w.bias_hh = in[k + 3];
  if (norms > 0) w.norm_ih = {in[k + 2], in[k + 3]};
  if (norms > 1) w.norm_hh = {in[k + 4], in[k + 5]};
  if (norms > 2) w.norm_c = {in[k + 6], in[k + 7]};
  return w;
}

/// Sequences of 4, 0 and 2 steps: not sorted, one empty.
inline Tensor some_lengths() { return Tensor::from_ids({3}, {4, 0, 2}); }
inline Tensor sorted_lengths() { return Tensor::from_ids({3}, {3, 2, 1}); }
inline Tensor no_steps() { return Tensor::from_ids({3}, {0, 0, 0}); }

/// The options with a mask on the state, as dropout with p = 1/2 makes one, in the element type of x.
template <class Options>
Options masked(Options options, const Var& x) {
  options.state_mask = Tensor::from({3, 5}, {2, 0, 2, 2, 0, 0, 0, 2, 0, 2, 2, 2, 0, 2, 0}, x.dtype());
  return options;
}

}  // namespace gradus::cases
