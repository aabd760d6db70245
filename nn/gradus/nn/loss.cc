#include <gradus/nn/loss.h>

namespace gradus::nn {

CrossEntropy CrossEntropyLoss::operator()(const Input& logits, const Tensor& targets) const {
  At at(logits.caller());
  return cross_entropy(logits, targets, options);
}

Var NLLLoss::operator()(const Input& log_probs, const Tensor& targets) const {
  At at(log_probs.caller());
  return nll_loss(log_probs, targets, options);
}

Var MSELoss::operator()(const Input& input, const Var& target) const {
  At at(input.caller());
  return mse_loss(input, target, reduction);
}

Var BCEWithLogitsLoss::operator()(const Input& input, const Var& target) const {
  At at(input.caller());
  return binary_cross_entropy_with_logits(input, target, options);
}

Var KLDivLoss::operator()(const Input& input, const Var& target) const {
  At at(input.caller());
  return kl_div(input, target, options);
}

}  // namespace gradus::nn
