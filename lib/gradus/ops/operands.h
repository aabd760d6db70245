#pragma once

// Internal: what ops ask of their operands before they touch a number. Not installed.

#include <gradus/autograd.h>

namespace gradus {

/// @throws Error "[op] the input is undefined", "[op] needs f32 or f64 numbers: i32 [2, 3]"
inline void check_operand(const Var& x, const char* op) {
  if (!x.defined()) fail(op, "the input is undefined");
  if (!is_floating(x.dtype()))
    fail(op, std::string("needs f32 or f64 numbers: ") + name_of(x.dtype()) + " " + x.shape().str());
}

/// Both operands as above, and of one element type.
/// @throws Error "[op] element types must agree: f32 and f64"
inline void check_operands(const Var& a, const Var& b, const char* op) {
  if (!a.defined() || !b.defined()) fail(op, "an operand is undefined");
  if (a.dtype() != b.dtype())
    fail(op, std::string("element types must agree: ") + name_of(a.dtype()) + " and " + name_of(b.dtype()));
  check_operand(a, op);
}

/// What two sizes that should agree suggest: "512 = 2 x 256: bidirectional?", "" when nothing.
inline std::string size_hint(int64_t got, int64_t wanted) {
  const int64_t large = got > wanted ? got : wanted, small = got > wanted ? wanted : got;
  auto equation = [&](int64_t factor) {
    return std::to_string(large) + " = " + std::to_string(factor) + " x " + std::to_string(small) + ": ";
  };
  if (small < 2) return "";
  if (large == 2 * small) return equation(2) + "bidirectional?";
  if (large == 3 * small) return equation(3) + "the three gates of a GRU?";
  if (large == 4 * small) return equation(4) + "the four gates of an LSTM?";
  return "";
}

}  // namespace gradus
