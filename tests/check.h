#pragma once

// Small helpers shared by the tests.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <gradus/autograd.h>

namespace gradus::testing {

using Numbers = std::vector<double>;

inline Tensor f32(const Shape& shape, const Numbers& v) { return Tensor::from(shape, v, DType::f32); }
inline Tensor f64(const Shape& shape, const Numbers& v) { return Tensor::from(shape, v, DType::f64); }

/// The text of the Error that f throws; "(no error)" when it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "(no error)";
}

/// The gradient of sum(y * seed) with regard to x; seed 1 everywhere when none is given.
inline Numbers gradient(const Var& y, const Var& x, const Numbers& seed = {}) {
  Tensor s = seed.empty() ? Tensor::ones(y.shape(), y.dtype()) : Tensor::from(y.shape(), seed, y.dtype());
  return backward(y, {.seed = s, .retain_graph = true})[x].to_vector();
}

}  // namespace gradus::testing
