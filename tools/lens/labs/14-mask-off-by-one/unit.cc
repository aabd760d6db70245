// Attention of a model that writes: at each word it shall say the next.   Q, K, V [T, d] -> [T, d]
#include <lens/lesson.h>

using namespace gradus;

// u8 [T, T], 1 where word i may look at word j
Tensor may_look(int64_t T) {
  Tensor mask = Tensor::zeros({T, T}, DType::u8);
  for (int64_t i = 0; i < T; ++i)
#ifdef ANSWER
    for (int64_t j = 0; j <= i; ++j) mask.set(i * T + j, 1);
#else
    for (int64_t j = 0; j < std::min(T, i + 2); ++j) mask.set(i * T + j, 1);  // <bos>, and the words up to i
#endif
  return mask;
}

Var causal_attention(const Var& Q, const Var& K, const Var& V) {
  Var scores = matmul(Q, transpose(K, 0, 1)) / std::sqrt(static_cast<double>(Q.size(1)));
  return matmul(softmax(scores, {.mask = may_look(Q.size(0))}), V);
}

int main() {
  std::vector<std::string> words = {"<bos>", "he", "likes", "apples"};
  return lens::check("Causal attention", [](auto& in) { return causal_attention(in[0], in[1], in[2]); },
                     {{"Q", lens::random({4, 3}, 1), words},
                      {"K", lens::random({4, 3}, 2), words},
                      {"V", lens::random({4, 3}, 3), words}});
}
