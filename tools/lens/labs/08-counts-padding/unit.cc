// The loss of a padded batch.   logits [N, V], targets i32 [N], 0 = padding -> mean over the real words
#include <lens/lesson.h>

using namespace gradus;

Var loss(const Var& logits, const Tensor& targets) {
  CrossEntropy sum = cross_entropy(logits, targets, {.ignore_index = 0, .reduction = Reduction::sum});
#ifdef ANSWER
  return sum.loss / static_cast<double>(sum.tokens);
#else
  return sum.loss / static_cast<double>(targets.numel());
#endif
}

int main() {
  Tensor logits = lens::random({6, 5}, 1), targets = Tensor::from_ids({6}, {3, 1, 2, 0, 0, 0});
  int wrong = lens::check("The loss of a padded batch", [&](auto& in) { return loss(in[0], targets); },
                          {{"logits", logits, {"il", "aime", ".", "<pad>", "<pad>", "<pad>"}}});
  double padded = loss(logits, targets).item(), alone = loss(logits.rows(0, 3), targets.rows(0, 3)).item();
  return wrong + lens::expect(std::abs(padded - alone) < 1e-9, "padding does not change the loss",
                              "The same three words have a smaller loss with padding behind them.");
}
