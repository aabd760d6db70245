// Chapter 13: scaled dot-product attention. Formulas and shapes: `lens lesson 13`.
#include <lens/lesson.h>

#include <cstdio>

using namespace gradus;
using lens::dot, lens::Rows;

// Every query looks at all keys, and mixes their values.   Q [T, d], K [S, d], V [S, d]  ->  o [T, d]
Var attention(const Var& Q, const Var& K, const Var& V) {
  const int64_t T = Q.size(0), S = K.size(0), d = Q.size(1);
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  Tensor o = lens::zeros({T, d});
  Rows Q_(Q.value()), K_(K.value()), V_(V.value()), alpha_(lens::zeros({T, S})), o_(o);
  for (int64_t i = 0; i < T; ++i) {
    double total = 0;
    for (int64_t j = 0; j < S; ++j) total += alpha_[i][j] = std::exp(scale * dot(Q_[i], K_[j], d));
    for (int64_t j = 0; j < S; ++j) {
      alpha_[i][j] /= total;
      for (int64_t k = 0; k < d; ++k) o_[i][k] += alpha_[i][j] * V_[j][k];
    }
  }
  return record("attention", {Q, K, V}, o, [=](const Tensor& dy, Grads& grads) {
    Rows g(dy), dQ(grads.into(0)), dK(grads.into(1)), dV(grads.into(2));
    for (int64_t i = 0; i < T; ++i)
      for (int64_t j = 0; j < S; ++j) {
        for (int64_t k = 0; k < d; ++k) dV[j][k] += alpha_[i][j] * g[i][k];  // the value path
          // ---- your turn: delta of query i and key j, then dQ and dK ----
#ifdef ANSWER
        double delta = alpha_[i][j] * (dot(g[i], V_[j], d) - dot(g[i], o_[i], d));
        for (int64_t k = 0; k < d; ++k) {
          dQ[i][k] += scale * delta * K_[j][k];
          dK[j][k] += scale * delta * Q_[i][k];
        }
#else
        (void)scale, (void)dQ, (void)dK;  // delete this line
#endif
        // ---- end ----
      }
  });
}

// 500 queries of width d with 8 keys each: how far scores spread, the largest weight, what softmax lets back.
void saturation(int64_t d) {
  Rng rng(1);
  Var q = Tensor::normal({500, 1, d}, 0, 1, rng, DType::f64),
      K = Tensor::normal({500, 8, d}, 0, 1, rng, DType::f64);
  Var e = sum(q * K, 2), as_is = softmax(e), scaled = softmax(e / std::sqrt(static_cast<double>(d)));
  auto print = [](const char* format, const Var& number) { std::printf(format, mean(number).item()); };
  std::printf("    %5d", static_cast<int>(d));
  print("   variance %4.0f", e * e);
  for (const Var& alpha : {as_is, scaled})
    print("      %.2f", max(alpha, 1)), print("  %.2f", 1.0 - sum(alpha * alpha, 1));
  std::printf("\n");
}

int main() {
  std::vector<std::string> words = {"he", "likes", "red", "apples"};
  int wrong =
      lens::check("Scaled dot-product attention", [](auto& in) { return attention(in[0], in[1], in[2]); },
                  {{"Q", lens::random({4, 3}, 1), words},
                   {"K", lens::random({4, 3}, 2), words},
                   {"V", lens::random({4, 3}, 3), words}},
                  {.exercise = "scaled-dot"});
  if (wrong) return 1;
  std::printf("        d   of the scores      as they are     over sqrt(d)\n");
  for (int64_t d : {4, 16, 64, 256}) saturation(d);
  std::printf("\n");
  return 0;
}
