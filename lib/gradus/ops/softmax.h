#pragma once

#include <gradus/autograd.h>

namespace gradus {

struct SoftmaxOptions {
  int axis = -1;
  /// u8, broadcasts to x; 1 = real, 0 = left out. A row with nothing real is 0, its gradient too.
  Tensor mask = {};
};

// A row below is one run along the axis. What stands in a masked place, NaN included, has no influence.

/// y_i = exp(x_i) / sum_k exp(x_k), the maximum subtracted first. x [...] -> [...].
///   dx_i = y_i (dy_i - sum_k y_k dy_k)
/// @throws Error "[softmax] mask must broadcast to the input: mask [2, 3], input [2, 4]", "[softmax] mask
/// must be u8: f32".
Var softmax(const Input& x, const SoftmaxOptions& options = {});

/// y_i = x_i - log sum_k exp(x_k); masked entries are 0 (not -inf: their gradient is 0, sums stay finite).
///   dx_i = dy_i - exp(y_i) sum_k dy_k, over real places i, k
/// @throws Error as softmax.
Var log_softmax(const Input& x, const SoftmaxOptions& options = {});

}  // namespace gradus
