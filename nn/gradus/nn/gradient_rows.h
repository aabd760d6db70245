#pragma once

#include <gradus/autograd.h>

namespace gradus::nn {

/// Rewrites row gradients so that no id occurs twice: one RowGradient, ids in the order of first occurrence,
/// rows of equal ids summed in the order they came. The gradient stays the same one. Entries with a dense
/// part are left alone.
void sum_repeated_rows(Gradients::Entry& entry);

}  // namespace gradus::nn
