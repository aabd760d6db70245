// Chapter 15: the causal mask. Formulas and shapes: `lens lesson 15`.
#include <lens/lesson.h>

#include <cstdio>

using namespace gradus;
using lens::dot, lens::Rows, lens::Vector;

// Word i looks at the words 0 .. i. Of the weights only the sum below each fraction is kept.
// Q, K, V [T, d] -> o [T, d]
Var causal_attention(const Var& Q, const Var& K, const Var& V) {
  const int64_t T = Q.size(0), d = Q.size(1);
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  Tensor o = lens::zeros({T, d});
  Rows Q_(Q.value()), K_(K.value()), V_(V.value()), o_(o);
  Vector total_(lens::zeros({T}));
  auto weight = [=](int64_t i, int64_t j) { return std::exp(scale * dot(Q_[i], K_[j], d)) / total_[i]; };
  for (int64_t i = 0; i < T; ++i) {
    for (int64_t j = 0; j <= i; ++j) total_[i] += std::exp(scale * dot(Q_[i], K_[j], d));
    for (int64_t j = 0; j <= i; ++j)
      for (int64_t k = 0; k < d; ++k) o_[i][k] += weight(i, j) * V_[j][k];
  }
  return record("causal_attention", {Q, K, V}, o, [=](const Tensor& dy, Grads& grads) {
    Rows g(dy), dQ(grads.into(0)), dK(grads.into(1)), dV(grads.into(2));
    for (int64_t i = 0; i < T; ++i) {
      // ---- your turn: chapter 13's backward, for the pairs that were looked at ----
#ifdef ANSWER
      for (int64_t j = 0; j <= i; ++j) {
        double alpha = weight(i, j), delta = alpha * (dot(g[i], V_[j], d) - dot(g[i], o_[i], d));
        for (int64_t k = 0; k < d; ++k) {
          dV[j][k] += alpha * g[i][k];
          dQ[i][k] += scale * delta * K_[j][k];
          dK[j][k] += scale * delta * Q_[i][k];
        }
      }
#else
      for (int64_t j = 0; j < T; ++j)
        for (int64_t k = 0; k < d; ++k) dV[j][k] += weight(i, j) * g[i][k];
      (void)dQ, (void)dK;  // delete this line
#endif
      // ---- end ----
    }
  });
}

int main() {
  std::vector<std::string> words = {"he", "likes", "red", "apples"};
  std::vector<lens::CheckInput> in;
  for (const char* name : {"Q", "K", "V"}) in.push_back({name, lens::random({4, 3}, 1 + in.size()), words});
  auto f = [](auto& x) { return causal_attention(x[0], x[1], x[2]); };
  if (lens::check("The causal mask", f, in, {.exercise = "causal"}) != 0) return 1;
  std::printf("  what one more of V_j moves in o_i\n         ");
  for (const std::string& word : words) std::printf("%8s", word.c_str());
  double future = 0;
  for (int64_t i = 0; i < 4; ++i) {
    Var Q = variable(in[0].value), K = variable(in[1].value), V = variable(in[2].value);
    Var o = causal_attention(Q, K, V);
    Tensor dV = backward(sum(select(o, 0, i)))[V];
    std::printf("\n  %-7s", words[static_cast<size_t>(i)].c_str());
    for (int64_t j = 0; j < 4; ++j) std::printf("%8.3g", dV.at(3 * j));
    for (int64_t p = 3 * (i + 1); p < 12; ++p) future += std::abs(dV.at(p));
  }
  std::printf("\n\n");
  return lens::expect(future == 0, "the future gets nothing, not a little",
                      "Something reaches words after i.");
}
