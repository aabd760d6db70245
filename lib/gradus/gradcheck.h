#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gradus/autograd.h>
#include <gradus/diagnosis.h>

namespace gradus {

struct GradcheckOptions {
  /// Central difference step, times max(1, |x|).
  double step = 1e-5;
  /// On |analytic - numeric| / max(|analytic|, |numeric|, a hundredth of the parameter's largest gradient), as
  /// far as differences can tell.
  double tolerance = 1e-6;
  /// A parameter with more is checked along `directions` random directions, at least one.
  int64_t max_elements = 400;
  int directions = 6;
  uint64_t seed = 1;
  /// Of the inputs, for messages; those that have none are input0, input1, ...
  std::vector<std::string> names = {};
};

/// What a gradient check found. Converts to bool: true when all is well.
struct GradcheckReport {
  bool ok = true;
  /// Relative, as in GradcheckOptions::tolerance.
  double worst_error = 0;
  /// "weight_hh_l0[3,17]" or "weight_hh_l0 along direction 2"
  std::string worst_name = {};
  double analytic = 0, numeric = 0;
  /// Derivatives compared.
  int64_t checked = 0;
  /// Readable, whether ok or not.
  std::string message;
  /// Of the parameters that fail, the three worst ones at most: the kind of mistake.
  Diagnosis diagnosis;
  explicit operator bool() const { return ok; }
};

/// Compares the engine's gradients of f with central differences, for every parameter. f is any function of
/// them that returns a Var; a non-scalar output is summed with fixed random weights. Parameters must be f64. If
/// all derivatives agree, a second backward tests accumulation: every value that f uses then has another use,
/// whose contribution must not be lost. The report says when f is not deterministic (dropout on?), was computed
/// in float or does not depend on a parameter, when a backward writes into dy or into what it captured, and
/// when the worst point is a kink. Otherwise it names the kind of mistake, as diagnose() does, which knows more
/// when f's result is not a scalar.
GradcheckReport gradcheck(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters,
                          const GradcheckOptions& options = {});

/// The same for a plain function of tensors, in f64; those of other types (ids, masks) are constants.
GradcheckReport gradcheck(const std::function<Var(const std::vector<Var>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

}  // namespace gradus
