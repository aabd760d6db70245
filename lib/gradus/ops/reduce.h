#pragma once

#include <cstddef>
#include <vector>

#include <gradus/autograd.h>

// Over some axes or all of them: x [..., n, ...] -> y [..., ...], or [..., 1, ...] with keep_dims. Along an
// empty axis sum is 0, mean NaN, logsumexp -inf, and max an error.
// @throws Error "[sum] axis 3 does not exist: shape [2, 3]", "[sum] axis 1 is named twice: shape [2, 3]",
// "[max] nothing to take the maximum of: shape [0, 3]"

namespace gradus {

struct ReduceOptions {
  /// Reduced axes, negative ones count from the end; empty: all.
  std::vector<int> axes = {};
  /// Reduced axes stay with size 1.
  bool keep_dims = false;
};

/// y = sum x            dx = dy, stretched
Var sum(const Input& x, const ReduceOptions& options = {});
/// y = sum x / n        dx = dy / n, stretched
Var mean(const Input& x, const ReduceOptions& options = {});
/// y = max x            dx = dy where x = y, in equal parts where several are. NaN wins.
Var max(const Input& x, const ReduceOptions& options = {});
/// y = m + ln sum e^(x - m), m the maximum      dx = dy e^(x - y): the softmax of x
Var logsumexp(const Input& x, const ReduceOptions& options = {});

// Along one axis: sum(x, 1). The second of each pair keeps sum(x, {}) from meaning axis 0.
Var sum(const Input& x, int axis);
Var sum(const Input& x, std::nullptr_t) = delete;
Var mean(const Input& x, int axis);
Var mean(const Input& x, std::nullptr_t) = delete;
Var max(const Input& x, int axis);
Var max(const Input& x, std::nullptr_t) = delete;
Var logsumexp(const Input& x, int axis);
Var logsumexp(const Input& x, std::nullptr_t) = delete;

/// Index of the largest entry along the last axis (the first one of equals; NaN counts as largest):
/// [..., n] -> i32 [...]. @throws Error "[argmax] the last axis must have entries: shape [2, 0]"
Tensor argmax(const Input& x);

}  // namespace gradus
