#pragma once

// Small helpers shared by the tests.

#include <cstdlib>
#include <cstring>
#include <limits>
#include <source_location>
#include <string>
#include <vector>

#include <gradus/autograd.h>

#include "function_ref.h"
#include "quick_doctest.h"

namespace gradus::testing {

using Numbers = std::vector<double>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

inline Tensor f32(const Shape& shape, const Numbers& v, Caller caller = Caller::current()) {
  return Tensor::from(shape, v, DType::f32, caller);
}
inline Tensor f64(const Shape& shape, const Numbers& v, Caller caller = Caller::current()) {
  return Tensor::from(shape, v, DType::f64, caller);
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// `text` without its " (test_x.cc:12)", provided that this is the test's own file and a line close to `here`
/// (a lambda may take several); any other place stays in the text, where a comparison trips over it.
inline std::string without_own_line(std::string text, const std::source_location& here) {
  std::string file = here.file_name();
  file = " (" + file.substr(file.find_last_of('/') + 1) + ":";
  size_t begin = text.find(file), end = text.find(')', begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) return text;
  long line = std::strtol(text.c_str() + begin + file.size(), nullptr, 10);
  if (std::abs(line - static_cast<long>(here.line())) > 8) return text;
  return text.erase(begin, end + 1 - begin);
}

/// A piece of code to run.
using Code = FunctionRef<void()>;

/// The text of the Error that f throws, without the place of the call; "(no error)" when it throws none.
inline std::string error_of(const Code& f, const std::source_location& here = std::source_location::current()) {
  try {
    f();
  } catch (const Error& e) {
    return without_own_line(e.what(), here);
  }
  return "(no error)";
}

/// The same for ops and modules, whose errors must name the line of the call: "(no line) ..." when one does
/// not.
inline std::string op_error_of(const Code& f,
                               const std::source_location& here = std::source_location::current()) {
  try {
    f();
  } catch (const Error& e) {
    std::string text = without_own_line(e.what(), here);
    return text == e.what() ? "(no line) " + text : text;
  }
  return "(no error)";
}

/// The gradient of sum(y * seed) with regard to x; seed 1 everywhere when none is given.
inline Numbers gradient(const Var& y, const Var& x, const Numbers& seed = {}) {
  Tensor s = seed.empty() ? Tensor::ones(y.shape(), y.dtype()) : Tensor::from(y.shape(), seed, y.dtype());
  return backward(y, {.seed = s, .retain_graph = true})[x].to_vector();
}

}  // namespace gradus::testing
