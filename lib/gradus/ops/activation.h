#pragma once

#include <gradus/autograd.h>

namespace gradus {

Var tanh(const Var& x);
Var sigmoid(const Var& x);
/// max(x, 0); gradient 0 at 0.
Var relu(const Var& x);
/// x Phi(x), Phi the normal distribution function (exact form, erf; Hendrycks & Gimpel 2016).
Var gelu(const Var& x);
/// log(1 + exp(x)), without overflow.
Var softplus(const Var& x);

}  // namespace gradus
