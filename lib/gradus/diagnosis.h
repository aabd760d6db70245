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
  float_used,         ///< f is computed in f32 somewhere: central differences need f64
  not_finite,         ///< f is NaN or infinite at this point
  not_deterministic,  ///< two calls, or two backwards, at one point give two results
  kink,               ///< the slopes on both sides differ: the point, not the gradient, is wrong
  not_connected,      ///< no gradient, or zeros, although the result depends on the input
  not_linear,         ///< backward(dy1 + dy2) is not backward(dy1) + backward(dy2): dy is not used as it must
  mask_leak,          ///< elements without influence on the result receive a gradient
  incomplete,         ///< some elements receive nothing, the others what they should
  sign,               ///< -1 times the gradient
  factor,             ///< c times the gradient
  swapped,            ///< the gradient of another input
  transposed,         ///< two axes of the input, or of dy, exchanged
  softmax_diagonal,   ///< only the diagonal of a Jacobian whose outputs compete
  broadcast_sum,      ///< one entry taken where dy must be summed over an axis
  overwritten,        ///< of several contributions, other uses' included, only the one that was written last
  shifted,            ///< what belongs to a neighbour along an axis: an index off by one
  slope,              ///< a factor made of x and y is missing, too much, or stands in another's place
  wrong_axis,         ///< elements reach others along an axis that is not theirs
  cross_terms,        ///< of what the elements of a row send each other and themselves one part is wrong
  invariant,  ///< a row does not sum to 0 although the result stays when all of it is shifted, or scaled
  unknown,
};

/// "mask leak" and the like.
const char* name_of(Mistake mistake);

/// The diagnosis of one input. `analytic` and `numeric` are gradients under one random dy, in the input's
/// shape, so that a tool can draw yours | numeric | difference; numeric is NaN at the elements of a large input
/// that were not differentiated. If the backward loses the contributions of other uses, both are taken with
/// such uses present, since the mistake does not show without them.
struct InputDiagnosis {
  std::string name;
  Mistake mistake = Mistake::none;
  std::string sentence = {};  ///< what to look for, with figures; empty when all is well
  Tensor analytic, numeric;   ///< f64
  double worst_error = 0;    ///< largest |analytic - numeric| in J / max(floor, |analytic|, |numeric|)
  double floor = 1;          ///< a hundredth of the largest number in J, or what differences cannot tell from 0
  int64_t worst = -1;        ///< row-major position of that element
};

struct Diagnosis {
  Mistake mistake = Mistake::none;  ///< of the worst input, or of f itself
  std::string name = {};            ///< of that input; empty where f itself is at fault
  std::string sentence = {};
  std::vector<InputDiagnosis> inputs = {};  ///< empty where f itself is at fault
  Tensor dy = {};  ///< random, of f's shape: the gradients that are drawn are under it
  explicit operator bool() const { return mistake == Mistake::none; }
};

struct DiagnosisOptions {
  double step = 1e-5;         ///< central difference step, times max(1, |x|)
  double tolerance = 1e-6;    ///< on InputDiagnosis::worst_error
  int64_t max_outputs = 256;  ///< larger results are seen through 8 random sums: some rules then cannot tell
  int64_t max_elements = 400; ///< of larger inputs so many elements, chosen at random
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
