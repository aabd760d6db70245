#include <gradus/nn/loss.h>

namespace gradus::nn {

CrossEntropy CrossEntropyLoss::operator()(const Var& logits, const Tensor& targets) const {
  return cross_entropy(logits, targets, options);
}

}  // namespace gradus::nn
