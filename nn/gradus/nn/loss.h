#pragma once

#include <gradus/nn/module.h>
#include <gradus/ops/cross_entropy.h>
#include <gradus/ops/loss.h>

// The losses as modules, that is with their options kept: PyTorch's names. Formulas and errors stand with the
// ops.

namespace gradus::nn {

/// gradus::cross_entropy: logits [..., V], targets i32 [...].
struct CrossEntropyLoss {
  CrossEntropyOptions options = {};

  CrossEntropy operator()(const Input& logits, const Tensor& targets) const;
  void params(ParamVisitor&) {}
};

/// gradus::nll_loss: log probabilities [..., C], targets i32 [...].
struct NLLLoss {
  NLLOptions options = {};

  Var operator()(const Input& log_probs, const Tensor& targets) const;
  void params(ParamVisitor&) {}
};

/// gradus::mse_loss: input and target [...].
struct MSELoss {
  Reduction reduction = Reduction::mean;

  Var operator()(const Input& input, const Var& target) const;
  void params(ParamVisitor&) {}
};

/// gradus::binary_cross_entropy_with_logits: logits and targets in [0, 1], both [...].
struct BCEWithLogitsLoss {
  BCEWithLogitsOptions options = {};

  Var operator()(const Input& input, const Var& target) const;
  void params(ParamVisitor&) {}
};

/// gradus::kl_div: log probabilities and probabilities, both [...].
struct KLDivLoss {
  KLDivOptions options = {};

  Var operator()(const Input& input, const Var& target) const;
  void params(ParamVisitor&) {}
};

}  // namespace gradus::nn
