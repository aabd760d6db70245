#pragma once

#include "sentence.h"

namespace lens {

/// Compares the gradients of a trace with central differences, in double precision, on all processors. Shown
/// step: every element of vectors and of matrices of up to kMatrixElements; each row and each column of larger
/// ones, along a direction of length 1. Other steps: some elements, some random directions, and the rows of the
/// annotations. The results are always in the same order.
std::vector<Compared> check_trace(const Dissection& d, const SentenceTrace& trace);

constexpr int64_t kMatrixElements = 1024;

}  // namespace lens
