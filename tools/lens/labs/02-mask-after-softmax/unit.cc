// Attention weights of a padded batch.   scores [B, S], mask u8 [B, S], 1 = word -> [B, S]
#include <lens/lesson.h>

using namespace gradus;

#ifdef ANSWER
Var weights(const Var& scores, const Tensor& mask) { return softmax(scores, {.mask = mask}); }
#else
Var weights(const Var& scores, const Tensor& mask) {
  Var all = softmax(scores);
  return where(mask, all, Tensor::zeros(scores.shape(), scores.dtype()));
}
#endif

int main() {
  Tensor scores = lens::random({2, 5}, 1),
         mask = Tensor::from({2, 5}, {1, 1, 1, 1, 1, 1, 1, 0, 0, 0}, DType::u8);
  Tensor w = weights(scores, mask).value();
  double sum = 0;
  for (int64_t s = 0; s < 5; ++s) sum += w.at(5 + s);
  int wrong = lens::check("Masked attention weights", [&](auto& in) { return weights(in[0], mask); },
                          {{"scores", scores, {"5 words", "2 words"}}});
  return wrong + lens::expect(std::abs(sum - 1) < 1e-9, "the weights of the short sentence sum to 1",
                              "They sum to less, and to less the more padding there is.");
}
