// Every word's query looks at all keys, and mixes their values.   Q [T, d], K [S, d], V [S, n] -> [T, n]
#include <lens/lesson.h>

#include <cstdio>

using namespace gradus;

Var attention(const Var& Q, const Var& K, const Var& V) {
  Var scores = matmul(Q, transpose(K, 0, 1));
#ifdef ANSWER
  scores = scores / std::sqrt(static_cast<double>(Q.size(1)));
#endif
  return matmul(softmax(scores), V);
}

// The largest weight of 100 random queries with 8 keys, on average. Of one-hot values the mix is the weights.
double largest_weight(int64_t width) {
  Rng rng(1);
  Var Q = Tensor::normal({100, width}, 0, 1, rng, DType::f64),
      K = Tensor::normal({8, width}, 0, 1, rng, DType::f64);
  Tensor one_hot = lens::zeros({8, 8});
  for (int64_t j = 0; j < 8; ++j) one_hot.set(j * 8 + j, 1);
  return mean(max(attention(Q, K, one_hot), 1)).item();
}

int main() {
  int wrong = lens::check("Attention", [](auto& in) { return attention(in[0], in[1], in[2]); },
                          {{"Q", lens::random({3, 4}, 1), {"he", "likes", "apples"}},
                           {"K", lens::random({3, 4}, 2), {"he", "likes", "apples"}},
                           {"V", lens::random({3, 4}, 3), {"he", "likes", "apples"}}});
  for (int64_t width : {4, 16, 64, 256})
    std::printf("  width %3d   largest of 8 weights %.2f\n", static_cast<int>(width), largest_weight(width));
  std::printf("\n");
  return wrong + lens::expect(largest_weight(256) < 0.5,
                              "random queries do not decide yet, however wide they are",
                              "One word has nearly all the weight before anything was learnt.");
}
