#pragma once

#include "sentence.h"

namespace lens {

/// Compares the gradients of a trace with central differences, in double precision, on all processors: of the
/// shown step every element of every vector, and of a matrix every element where it has no more than
/// kMatrixElements, else its rows and its columns, each along a direction of length 1; of the other steps some
/// elements and the rows. The order of what is found is always the same.
std::vector<Compared> check_trace(const Dissection& d, const SentenceTrace& trace);

constexpr int64_t kMatrixElements = 1024;

}  // namespace lens
