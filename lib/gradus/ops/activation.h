#pragma once

#include <gradus/autograd.h>

// Element by element, x [...] -> y [...], f32 or f64. NaN stays NaN.
// @throws Error "[tanh] needs f32 or f64 numbers: i32 [2, 3]", "[tanh] the input is undefined"

namespace gradus {

/// y = tanh x                       dx = dy (1 - y^2)
Var tanh(const Input& x);
/// y = 1 / (1 + e^-x)               dx = dy y (1 - y)
Var sigmoid(const Input& x);
/// y = max(x, 0)                    dx = dy where x > 0, else 0 (at 0 as well)        Nair & Hinton 2010
Var relu(const Input& x);
/// y = x, or slope x where x < 0    dx = dy where x > 0, else slope dy                Maas et al. 2013
/// @throws Error "[leaky_relu] slope must be positive: 0", of which relu is the case
Var leaky_relu(const Input& x, double slope = 0.01);
/// y = x Phi(x)                     dx = dy (Phi(x) + x phi(x))
/// Phi and phi are the normal distribution and its density; the exact form, with erf  Hendrycks & Gimpel 2016
Var gelu(const Input& x);
/// y = ln(1 + e^x), no overflow     dx = dy sigmoid(x)                                Dugas et al. 2000
Var softplus(const Input& x);

}  // namespace gradus
