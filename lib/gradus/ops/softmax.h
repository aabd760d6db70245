#pragma once

#include <gradus/autograd.h>

namespace gradus {

struct SoftmaxOptions {
  int axis = -1;
  Tensor mask = {};  ///< u8, broadcasts to x; 1 = real, 0 = left out. A row with nothing real is 0 with gradient 0.
};

Var softmax(const Var& x, const SoftmaxOptions& options = {});
/// log softmax; masked entries are 0 (not -inf: their gradient is 0 and sums over them stay finite).
Var log_softmax(const Var& x, const SoftmaxOptions& options = {});

}  // namespace gradus
