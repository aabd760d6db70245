#pragma once

// Internal: what the cases of rnn, gru and lstm share, at T = 4, B = 3, I = 2, H = 5. Not installed.

#include <gradus/op_case.h>
#include <gradus/ops/recurrent_weights.h>

namespace gradus::cases {

/// Inputs of a case: x, the states, then weights of so many rows and both biases, or of a normalised unit gain
/// and offset of so many norms.
inline std::vector<OpCase::Input> inputs_of(const Shape& x, size_t states, int64_t rows, int norms) {
  std::vector<OpCase::Input> in(1 + states, Shape{3, 5});
  in[0] = x;
  in.insert(in.end(), {Shape{rows, 2}, Shape{rows, 5}, Shape{rows}, Shape{rows}});
  if (norms > 1) in.insert(in.end(), 2, Shape{rows});
  if (norms > 2) in.insert(in.end(), 2, Shape{5});
  return in;
}

/// The weights among them, from input k on.
inline RecurrentWeights weights_from(const std::vector<Var>& in, size_t k, int norms) {
  RecurrentWeights w{in[k], in[k + 1]};
  if (norms == 0) w.bias_ih = in[k + 2], w.bias_hh = in[k + 3];
  if (norms > 0) w.norm_ih = {in[k + 2], in[k + 3]};
  if (norms > 1) w.norm_hh = {in[k + 4], in[k + 5]};
  if (norms > 2) w.norm_c = {in[k + 6], in[k + 7]};
  return w;
}

/// Inputs x, weight_ih, weight_hh and the gains of norms, if any: no biases, no offsets.
inline RecurrentWeights bare_weights(const std::vector<Var>& in) {
  RecurrentWeights w{in[1], in[2]};
  NormWeights* const norms[] = {&w.norm_ih, &w.norm_hh, &w.norm_c};
  for (size_t i = 3; i < in.size(); ++i) norms[i - 3]->weight = in[i];
  return w;
}

/// Sequences of 4, 0 and 2 steps: not sorted, one empty.
inline Tensor some_lengths() { return Tensor::from_ids({3}, {4, 0, 2}); }
inline Tensor sorted_lengths() { return Tensor::from_ids({3}, {3, 2, 1}); }
inline Tensor no_steps() { return Tensor::from_ids({3}, {0, 0, 0}); }

/// A mask on the state, as dropout with p = 1/2 makes one.
inline Tensor some_mask() { return Tensor::from({3, 5}, {2, 0, 2, 2, 0, 0, 0, 2, 0, 2, 2, 2, 0, 2, 0}); }

/// The options with their mask, if any, in the element type of x.
template <class Options>
Options in_type_of(const Var& x, Options options) {
  if (options.state_mask.defined()) options.state_mask = options.state_mask.to(x.dtype());
  return options;
}

template <class Options>
using Unit = Var (*)(const Input&, const Var&, const RecurrentWeights&, const Options&);

/// A unit that has one state, with so many rows of weights.
template <class Options>
OpCase unit_case(const std::string& name, const Shape& x, int64_t rows, Unit<Options> op,
                 Unit<Options> reference, const Options& options, int norms) {
  auto with = [=](Unit<Options> unit) {
    return [=](const std::vector<Var>& in) {
      return unit(in[0], in[1], weights_from(in, 2, norms), in_type_of(in[0], options));
    };
  };
  return {name, inputs_of(x, 1, rows, norms), with(op), with(reference)};
}

/// The same without biases, offsets and initial state: x [T, B, I] and weights of these shapes.
template <class Options>
OpCase bare_case(const std::string& name, const std::vector<OpCase::Input>& inputs, Unit<Options> op,
                 Unit<Options> reference) {
  auto with = [](Unit<Options> unit) {
    return [=](const std::vector<Var>& in) { return unit(in[0], {}, bare_weights(in), {}); };
  };
  return {name, inputs, with(op), with(reference)};
}

/// What every unit is checked with over time: both directions, all kinds of padding, a mask on the state.
template <class Options>
std::vector<OpCase> over_time(const std::string& op, OpCase (*of)(const std::string&, const Options&, int),
                              int norms) {
  auto with = [&](const char* what, const Options& options) { return of(op + what, options, norms); };
  return {with("", {}),
          with(": reverse", {.reverse = true}),
          with(": lengths", {.lengths = some_lengths()}),
          with(": reverse, lengths", {.reverse = true, .lengths = some_lengths()}),
          with(": sorted lengths", {.lengths = sorted_lengths()}),
          with(": reverse, sorted lengths", {.reverse = true, .lengths = sorted_lengths()}),
          with(": nothing but padding", {.lengths = no_steps()}),
          with(": state mask", {.state_mask = some_mask()}),
          with(": state mask, reverse, lengths",
               {.reverse = true, .lengths = some_lengths(), .state_mask = some_mask()})};
}

}  // namespace gradus::cases
