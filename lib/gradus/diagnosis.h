#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gradus/autograd.h>

namespace gradus {

/// A parameter to check, under a name for the report.
struct NamedParameter {
  std::string name;
  Parameter* parameter;
};

/// What is wrong with a gradient. J is the Jacobian: a row for each output, a column for each input element.
enum class Mistake {
  none,
  /// f is computed in f32 somewhere: central differences need f64.
  float_used,
  /// f is NaN or infinite at this point.
  not_finite,
  /// Two calls, or two backwards, at one point give two results.
  not_deterministic,
  /// The slopes on both sides differ: the point, not the gradient, is wrong.
  kink,
  /// No gradient, or zeros, although the result depends on the input.
  not_connected,
  /// backward(dy1 + dy2) is not backward(dy1) + backward(dy2): dy is not used as it must.
  not_linear,
  /// Elements without influence on the result receive a gradient.
  mask_leak,
  /// Some elements receive nothing, the others what they should.
  incomplete,
  /// -1 times the gradient.
  sign,
  /// c times the gradient.
  factor,
  /// The gradient of another input.
  swapped,
  /// Two axes of the input, or of dy, exchanged.
  transposed,
  /// Only the diagonal of a Jacobian whose outputs compete.
  softmax_diagonal,
  /// One entry taken where dy must be summed over an axis.
  broadcast_sum,
  /// Of several contributions, other uses' included, only the one that was written last.
  overwritten,
  /// What belongs to a neighbour along an axis: an index off by one.
  shifted,
  /// A factor made of x and y is missing, too much, or stands in another's place.
  slope,
  /// Elements reach others along an axis that is not theirs.
  wrong_axis,
  /// Of what the elements of a row send each other and themselves one part is wrong.
  cross_terms,
  /// A row does not sum to 0 although the result stays when all of it is shifted, or scaled.
  invariant,
  unknown,
};

/// "mask leak" and the like.
const char* name_of(Mistake mistake);

/// The diagnosis of one input. `analytic` and `numeric` are gradients (f64) under one random dy, in the input's
/// shape, so that a tool can draw yours | numeric | difference; numeric is NaN at the elements of a large input
/// that were not differentiated. If the backward loses the contributions of other uses, both are taken with
/// such uses present, since the mistake does not show without them.
struct InputDiagnosis {
  std::string name;
  Mistake mistake = Mistake::none;
  /// What to look for, with figures; empty when all is well.
  std::string sentence = {};
  Tensor analytic, numeric;
  /// Largest |analytic - numeric| in J / max(floor, |analytic|, |numeric|).
  double worst_error = 0;
  /// A hundredth of the largest number in J, or what differences cannot tell from 0.
  double floor = 1;
  /// Row-major position of that element.
  int64_t worst = -1;
};

/// Of the worst input, or of f itself: then `name` and `inputs` are empty.
struct Diagnosis {
  Mistake mistake = Mistake::none;
  std::string name = {};
  std::string sentence = {};
  std::vector<InputDiagnosis> inputs = {};
  /// Random, of f's shape: the gradients that are drawn are under it.
  Tensor dy = {};
  explicit operator bool() const { return mistake == Mistake::none; }
};

struct DiagnosisOptions {
  /// Central difference step, times max(1, |x|).
  double step = 1e-5;
  /// On InputDiagnosis::worst_error.
  double tolerance = 1e-6;
  /// Larger results are seen through 8 random sums: some rules then cannot tell.
  int64_t max_outputs = 256;
  /// Of larger inputs so many elements, chosen at random.
  int64_t max_elements = 400;
  uint64_t seed = 1;
};

/// Finds out what kind of mistake a backward has: compares the Jacobian that the engine computes, a backward
/// for each output, with that of central differences. f is any function of the parameters. These must be f64.
Diagnosis diagnose(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters,
                   const DiagnosisOptions& options = {});

/// The same for a plain function of tensors, in f64, named input0, input1, ...; ids and masks are constants.
Diagnosis diagnose(const std::function<Var(const std::vector<Var>&)>& f, const std::vector<Tensor>& inputs,
                   const DiagnosisOptions& options = {});

}  // namespace gradus
