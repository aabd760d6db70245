// Dot-product attention with its backward by hand.   q [D], h [S, D] -> context [D]
#include <lens/lesson.h>

using namespace gradus;
using lens::dot, lens::Rows;

Var attention(const Var& q, const Var& h) {
  const int64_t S = h.size(0), D = h.size(1);
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  Tensor c = lens::zeros({D});
  Rows q_(q.value()), h_(h.value()), alpha(lens::zeros({S})), c_(c);
  double total = 0;
  for (int64_t j = 0; j < S; ++j) total += alpha[0][j] = std::exp(scale * dot(q_[0], h_[j], D));
  for (int64_t j = 0; j < S; ++j) {
    alpha[0][j] /= total;
    for (int64_t d = 0; d < D; ++d) c_[0][d] += alpha[0][j] * h_[j][d];
  }
  return record("attention", {q, h}, c, [=](const Tensor& g, Grads& dx) {
    Rows g_(g), dq(dx.into(0)), dh(dx.into(1));
    for (int64_t j = 0; j < S; ++j) {
      double dalpha = dot(g_[0], h_[j], D);
#ifdef ANSWER
      double delta = alpha[0][j] * (dalpha - dot(g_[0], c_[0], D));
#else
      double delta = alpha[0][j] * (1 - alpha[0][j]) * dalpha;
#endif
      for (int64_t d = 0; d < D; ++d) {
        dq[0][d] += scale * delta * h_[j][d];
        dh[j][d] += alpha[0][j] * g_[0][d] + scale * delta * q_[0][d];
      }
    }
  });
}

int main() {
  return lens::check(
      "Attention", [](auto& in) { return attention(in[0], in[1]); },
      {{"q", lens::random({4}, 1)}, {"h", lens::random({5, 4}, 2), {"he", "does", "not", "like", "apples"}}});
}
