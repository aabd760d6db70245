#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// y = gamma (x - mean) / sqrt(var + eps) + beta over the last axis, var divided by n (Ba et al. 2016).
/// x [..., n], gamma [n], beta [n] -> [..., n].
Var layer_norm(const Var& x, const Var& gamma, const Var& beta, double eps = 1e-5);

}  // namespace gradus
