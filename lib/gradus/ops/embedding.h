#pragma once

#include <gradus/autograd.h>

namespace gradus {

struct EmbeddingOptions {
  /// Row that receives no gradient; -1 for none.
  int32_t padding_idx = -1;
};

/// Rows of a table: weight [V, E], ids i32 [...] -> [..., E].
///   y_n = weight[ids_n]      dweight[v] = sum of dy_n over n with ids_n = v
/// Gradients of repeated ids add up; they stay sparse when weight is a leaf.
/// @throws Error "[embedding] ids must be in 0 .. 9: 12", and for a padding_idx that is no row.
Var embedding(const Input& weight, const Tensor& ids, const EmbeddingOptions& options = {});

}  // namespace gradus
