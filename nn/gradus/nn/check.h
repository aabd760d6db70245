#pragma once

#include <cstdint>

#include <gradus/tensor.h>

// Checks of constructor arguments and inputs that several modules need.

namespace gradus::nn {

/// @throws Error "[Linear] in_features must be positive: 0"
void must_be_positive(const char* where, const char* what, int64_t value);
/// NaN neither.
void must_be_positive(const char* where, const char* what, double value);
/// @throws Error "[Dropout] p must be in [0, 1): 1.5"
void must_be_probability(const char* where, const char* what, double p);
/// @throws Error unless lengths is undefined or i32 [B] with entries in 0 .. T.
void must_be_lengths(const char* where, const Tensor& lengths, int64_t B, int64_t T);

}  // namespace gradus::nn
