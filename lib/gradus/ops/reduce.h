#pragma once

#include <vector>

#include <gradus/autograd.h>

namespace gradus {

struct ReduceOptions {
  std::vector<int> axes = {};  ///< reduced axes, negative ones count from the end; empty: all
  bool keep_dims = false;      ///< reduced axes stay with size 1
};

Var sum(const Var& x, const ReduceOptions& options = {});
Var mean(const Var& x, const ReduceOptions& options = {});
/// Ties share the gradient equally.
Var max(const Var& x, const ReduceOptions& options = {});
/// log sum exp, the maximum subtracted first.
Var logsumexp(const Var& x, const ReduceOptions& options = {});

/// Index of the largest entry along the last axis (the first one of equals): [..., n] -> i32 [...].
Tensor argmax(const Tensor& x);

}  // namespace gradus
