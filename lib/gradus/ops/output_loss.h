#pragma once

#include <gradus/autograd.h>
#include <gradus/ops/cross_entropy.h>
#include <gradus/parallel.h>

namespace gradus {

/// cross_entropy(linear(hidden, weight, bias), targets) without ever holding all the logits: a few hundred
/// rows at a time go through product, softmax, loss, gradient and the three products of the backward while
/// they are in memory. hidden [..., H], weight [V, H], bias [V] or undefined, targets i32 [...]. No
/// Reduction::none.
///   logits_n = W h_n + b      d_n = (p_n - q_n) / tokens, as in cross_entropy
///   dhidden_n = W^T d_n      dW = sum_n d_n h_n^T      db = sum_n d_n, each times dloss
/// Rows that are ignored cost nothing. The gradients are worked out in the forward pass, when they are
/// wanted; what is saved for backward is they themselves.
/// The threads of `pool` share the work, cut into `parts` (0: one for each thread): each takes some of the V
/// words, so that there is one set of logits and one dW whatever their number. The same number of parts gives
/// the same bits, on any number of threads; null: this thread alone.
/// @throws Error "[linear_cross_entropy] hidden's last dimension must be weight's: hidden [6, 4], weight [10,
/// 5]", "[linear_cross_entropy] targets must be in 0 .. 9: 12", and so on.
CrossEntropy linear_cross_entropy(const Input& hidden, const Var& weight, const Var& bias,
                                  const Tensor& targets, const CrossEntropyOptions& options = {},
                                  ThreadPool* pool = nullptr, int parts = 0);

}  // namespace gradus
