#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// The two directions of a bidirectional layer side by side, in one pass: y_tb = [f_tb ; b_tb] where t <
/// lengths_b, else 0.   forward [T, B, H], backward the same or undefined, lengths i32 [B] or undefined (all T)
/// -> [T, B, H or 2H]
///   df = the first H columns of dy, db = the others, both 0 at padding
/// @throws Error for other shapes, or a length outside 0 .. T.
Var join_directions(const Input& forward, const Var& backward, const Tensor& lengths);

}  // namespace gradus
