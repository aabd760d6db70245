#pragma once

#include <gradus/autograd.h>

// Element by element, with NumPy's broadcasting of two shapes [..a], [..b] -> [..broadcast(a, b)]. Both operands must
// have one element type. @throws Error "[add] shapes do not broadcast: [2, 3] and [4, 3]",
// "[add] element types must agree: f32 and f64".

namespace gradus {

Var operator+(const Var& a, const Var& b);
Var operator-(const Var& a, const Var& b);
Var operator*(const Var& a, const Var& b);
Var operator/(const Var& a, const Var& b);
Var operator-(const Var& x);

Var operator+(const Var& a, double b);
Var operator+(double a, const Var& b);
Var operator-(const Var& a, double b);
Var operator-(double a, const Var& b);
Var operator*(const Var& a, double b);
Var operator*(double a, const Var& b);
Var operator/(const Var& a, double b);
Var operator/(double a, const Var& b);

Var pow(const Var& x, double exponent);
Var pow(const Var& x, const Var& exponent);
Var sqrt(const Var& x);
Var exp(const Var& x);
Var log(const Var& x);
Var abs(const Var& x);
/// Where both are equal each gets half of the gradient.
Var maximum(const Var& a, const Var& b);
Var minimum(const Var& a, const Var& b);
/// min(max(x, low), high); gradient 1 inside [low, high], 0 outside.
Var clamp(const Var& x, double low, double high);
/// a where condition (u8, broadcasts) is not 0, else b.
Var where(const Tensor& condition, const Var& a, const Var& b);

}  // namespace gradus
