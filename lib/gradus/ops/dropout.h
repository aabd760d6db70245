#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// Under Training: each entry is 0 with probability p, otherwise x / (1 - p) (inverted dropout, Srivastava et
/// al. 2014). Outside Training, or with p = 0: x itself.  x [...] -> [...].
///   y_i = m_i x_i / (1 - p)      dx_i = m_i dy_i / (1 - p), m_i in {0, 1}
/// m_i follows from Training's seed, the number of random ops before this one, and i alone: word i % 4 of
/// Philox block i / 4 drops the entry when it is below p 2^32.
/// @throws Error "[dropout] p must be in [0, 1): 1.5".
Var dropout(const Var& x, double p);

}  // namespace gradus
