#pragma once

// Internal: the rules behind diagnose(). Not installed.

#include <fmt/core.h>

#include <optional>
#include <string>
#include <vector>

#include <gradus/diagnosis.h>

namespace gradus {

struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<double> values;
  Matrix() = default;
  Matrix(int64_t r, int64_t c) : rows(r), cols(c), values(static_cast<size_t>(r * c)) {}
  double& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * cols + c)]; }
  double at(int64_t r, int64_t c) const { return values[static_cast<size_t>(r * cols + c)]; }
};

/// What the rules may look at: one input with N elements, an output seen through K sums of its elements.
struct Evidence {
  std::string name;
  Shape in, out;
  /// f's result, and the N numbers of the input.
  std::vector<double> output;
  std::vector<double> input;
  /// K outputs one by one, in row-major order; else random sums of them.
  bool each_output;
  /// [K, N]
  Matrix analytic;
  /// [K, C], one column for each of `elements`.
  Matrix numeric = {};
  /// [K, C] slope to the right minus slope to the left.
  Matrix bend = {};
  /// Row-major positions that were differentiated.
  std::vector<int64_t> elements = {};
  /// The engine returned a gradient at all.
  bool reached = false;
  /// [N] the gradient that is drawn, under one random dy.
  std::vector<double> yours = {};

  /// Largest numeric derivative, at least a little.
  double scale = 1e-9;
  /// Smaller derivatives are compared as if they were of this size: they are not known better.
  double floor = 1;
  int64_t element(int64_t c) const { return elements[static_cast<size_t>(c)]; }
  /// analytic at the c-th differentiated element
  double a(int64_t k, int64_t c) const { return analytic.at(k, element(c)); }
  double b(int64_t k, int64_t c) const { return numeric.at(k, c); }
};

struct Finding {
  Mistake mistake;
  std::string sentence;
  template <class... Args>
  Finding(Mistake m, fmt::format_string<Args...> text, Args&&... args)
      : mistake(m), sentence(fmt::format(text, std::forward<Args>(args)...)) {}
};

/// The first rule that explains the whole difference, or Mistake::unknown. `others` are all inputs.
Finding explain(const Evidence& e, const std::vector<Evidence>& others, double tolerance);

/// Of numbers that agree one by one: a factor of a slope that is missing, too much or another one, the terms of
/// a sum over a row, and what each row of the gradient must sum to.
std::optional<Finding> wrong_slope(const Evidence& e, const std::vector<Evidence>& others);

/// Why f is unfit for differences: not f64, not finite, not the same twice. Mistake::none where it is fit.
Diagnosis unfit(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters);

/// The index along an axis of the element at a row-major position.
inline int64_t along(const Shape& shape, int axis, int64_t position) {
  return position / shape.stride(axis) % shape[axis];
}

/// "[3,17]" for a row-major position; "" for a scalar.
std::string element_name(const Shape& shape, int64_t position);

/// Numbers below this part of the largest derivative by a parameter are compared as if they were of that size.
constexpr double kFloor = 1e-2;

/// Gradients under dy when every leaf and every intermediate value of f also has another use, whose
/// contribution arrives before f's backward begins: 3 to each element of a leaf, random numbers to intermediate
/// values. An op that sets (=) a gradient instead of adding to it (+=) loses that contribution.
struct OtherUses {
  /// For each leaf what the engine has; undefined where nothing arrives.
  std::vector<Tensor> kept;
  /// With every contribution collected by itself and added.
  std::vector<Tensor> expected;
  /// Largest difference of the two in parts of the largest number.
  std::vector<double> lost;
  /// Who loses them; empty where nothing is lost.
  std::string sentence;
};
OtherUses beside_other_uses(const std::function<Var()>& f, const std::vector<NamedParameter>& leaves,
                            const Tensor& dy);

/// A function of tensors as one of parameters: floating inputs in f64 named input0, input1, ...; others are
/// constants, undefined ones stay it. Refers to f and inputs.
struct OfParameters {
  OfParameters(const std::function<Var(const std::vector<Var>&)>& f, const std::vector<Tensor>& inputs,
               const std::vector<std::string>& names = {});
  OfParameters(const OfParameters&) = delete;
  std::vector<Parameter> parameters;
  std::vector<NamedParameter> named;
  std::function<Var()> call;
};

}  // namespace gradus
