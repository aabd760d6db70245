#pragma once

#include <vector>

#include <gradus/autograd.h>

namespace gradus {

/// Row numbers t B + b of the real steps (t < lengths_b) of a time-major batch, i32 [N], ascending.
/// lengths i32 [B] in 0 .. T. @throws Error unless they are.
Tensor real_rows(const Input& lengths, int64_t T);

/// Chosen rows of several tensors side by side, without the rows that nobody wants: y_i = [x^1_r ; x^2_r ; ...]
/// with r = rows_i.  parts [.., n_k] with the same leading axes; rows i32 [N], ascending -> [N, n_1 + n_2 ..]
///   dx^k_r = its columns of dy_i, 0 in the rows that were left out
/// @throws Error for no parts, other leading axes, or rows that do not exist.
Var concat_rows(const std::vector<Var>& parts, const Tensor& rows, Caller caller = Caller::current());

}  // namespace gradus
