#pragma once

#include <gradus/autograd.h>

// Element by element, with NumPy's broadcasting of two shapes [..a], [..b] -> [..broadcast(a, b)]: axes are
// aligned at the end, a missing axis or one of size 1 stretches. Both operands must have one element type,
// f32 or f64. The gradients below have the output's shape; the engine sums them over the axes along which an
// operand was stretched. dy stands for the gradient that arrives at y.
//
// @throws Error "[add] shapes do not broadcast: [2, 3] and [4, 3]", "[add] an operand is undefined",
// "[add] element types must agree: f32 and f64", "[add] needs f32 or f64 numbers: i32 [2, 3]"; the other ops
// likewise under the names sub, mul, div, neg, pow, sqrt, exp, log, abs, maximum, minimum and clamp.

namespace gradus {

/// y = a + b        da = dy              db = dy
Var operator+(const Input& a, const Var& b);
/// y = a - b        da = dy              db = -dy
Var operator-(const Input& a, const Var& b);
/// y = a b          da = dy b            db = dy a
Var operator*(const Input& a, const Var& b);
/// y = a / b        da = dy / b          db = -dy y / b
Var operator/(const Input& a, const Var& b);
/// y = -x           dx = -dy
Var operator-(const Input& x);

// The same with a number, which takes the element type of the Var.
Var operator+(const Input& a, double b);
Var operator+(double a, const Input& b);
Var operator-(const Input& a, double b);
Var operator-(double a, const Input& b);
Var operator*(const Input& a, double b);
Var operator*(double a, const Input& b);
Var operator/(const Input& a, double b);
Var operator/(double a, const Input& b);

/// y = x^e          dx = dy e x^(e-1), 0 where e = 0
Var pow(const Input& x, double exponent);
/// y = x^e          dx as above          de = dy y log x, 0 where x = 0 and e >= 0 (the limit)
Var pow(const Input& x, const Var& exponent);
/// y = sqrt(x)      dx = dy / (2 y)
Var sqrt(const Input& x);
/// y = e^x          dx = dy y
Var exp(const Input& x);
/// y = ln x         dx = dy / x
Var log(const Input& x);
/// y = |x|          dx = dy sign(x), 0 at 0
Var abs(const Input& x);
/// y = max(a, b)    dy goes to the larger one, half of it to each if they are equal. NaN in either gives NaN.
Var maximum(const Input& a, const Var& b);
/// y = min(a, b)    dy goes to the smaller one; halves and NaN as above.
Var minimum(const Input& a, const Var& b);
/// y = min(max(x, low), high)            dx = dy inside [low, high], 0 outside. NaN stays NaN.
/// @throws Error "[clamp] low must not exceed high: 2 and 1"
Var clamp(const Input& x, double low, double high);

}  // namespace gradus
