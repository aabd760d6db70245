// Chapter 10: masks and padding. Formulas and shapes: `lens lesson 10`.
#include <lens/lesson.h>

using namespace gradus;

// Attention weights of a batch.   scores [B, S], mask u8 [B, S] (1 = word, 0 = padding) -> [B, S]
Var masked_weights(const Var& scores, const Tensor& mask) {
  // ---- your turn: padding must get nothing, and words must share all ----
#ifdef ANSWER
  return softmax(where(mask, scores, -1e9));
#else
  Var weights = softmax(scores);
  return where(mask, weights, 0);
#endif
  // ---- end ----
}

int main() {
  Tensor scores = lens::random({3, 5}, 1);
  Tensor mask = Tensor::from({3, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0}, DType::u8);
  return lens::check("Masks and padding", [](auto& in) { return masked_weights(in[0], in[1].value()); },
                     {{"scores", scores, {"5 words", "3 words", "2 words"}}, {"mask", mask}},
                     {.exercise = "masked-softmax"});
}
