#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// Under Training: each entry is 0 with probability p, otherwise x / (1 - p) (inverted dropout, Srivastava et al. 2014).
/// Outside Training, or with p = 0: x itself.
Var dropout(const Var& x, double p);

}  // namespace gradus
