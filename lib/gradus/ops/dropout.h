#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// Under Training: each entry is 0 with probability p, otherwise x / (1 - p) (inverted dropout, Srivastava et
/// al. 2014). Outside Training, or with p = 0: x itself.  x [...] -> [...].
///   y_i = m_i x_i / (1 - p)      dx_i = m_i dy_i / (1 - p), m_i in {0, 1}
/// m_i follows from Training's seed, the number of random ops before this one, and i alone: word i % 4 of
/// Philox block i / 4 drops the entry when it is below p 2^32.
/// @throws Error "[dropout] p must be in [0, 1): 1.5".
Var dropout(const Input& x, double p);

/// keep[i] = m_(begin + i) for i < n: a part of the mask that belongs to a number of Training::next_stream. For
/// ops that drop entries they never hold all of.
void dropout_keep(std::pair<uint64_t, uint64_t> stream, double p, int64_t begin, int64_t n, uint8_t* keep);

/// The factors: 0 with probability p, otherwise 1 / (1 - p). Undefined outside Training and with p = 0.
/// @throws Error as dropout.
Tensor dropout_mask(const Shape& shape, double p, DType dtype);

/// Dropout of a sequence x [T, ...] with one mask for all T steps (Gal & Ghahramani 2016, arXiv:1512.05287).
/// y_t = m x_t / (1 - p), m drawn once in x_t's shape; dx_t likewise.
Var variational_dropout(const Input& x, double p);

}  // namespace gradus
