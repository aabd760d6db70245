#pragma once

#include <gradus/autograd.h>

// One of two values, element by element. Conditions and masks are u8 and broadcast with the values, as in
// arithmetic.h; which they choose is no function of the values, so nothing flows to them.
//
// @throws Error "[where] the condition must be u8: f32"; for operands as arithmetic.h says.

namespace gradus {

/// y = a where condition (u8, broadcasts) is not 0, else b   da = dy there, 0 elsewhere; db the other way round
Var where(const Tensor& condition, const Input& a, const Var& b);
Var where(const Tensor& condition, const Input& a, double b);
Var where(const Tensor& condition, double a, const Input& b);
/// y = value where mask (u8, broadcasts) is not 0, else x    dx = 0 there, dy elsewhere.
/// Scores of attention have softmax's own mask, softmax(scores, {.mask = mask}), exact for rows all masked.
Var masked_fill(const Input& x, const Tensor& mask, double value);

}  // namespace gradus
