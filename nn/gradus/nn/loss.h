#pragma once

#include <gradus/nn/module.h>
#include <gradus/ops/cross_entropy.h>

namespace gradus::nn {

/// gradus::cross_entropy with its options kept: logits [..., V], targets i32 [...].
struct CrossEntropyLoss {
  CrossEntropyOptions options = {};

  CrossEntropy operator()(const Var& logits, const Tensor& targets) const;
  void params(ParamVisitor&) {}
};

}  // namespace gradus::nn
