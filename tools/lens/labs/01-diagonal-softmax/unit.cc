// Dot-product attention with its backward by hand.   q [D], h [S, D] -> context [D]
#include <lens/lesson.h>

using namespace gradus;
using lens::dot, lens::Rows, lens::Vector;

Var attention(const Var& q, const Var& h) {
  const int64_t S = h.size(0), D = h.size(1);
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  Tensor c = lens::zeros({D});
  Rows h_(h.value());
  Vector q_(q.value()), alpha(lens::zeros({S})), c_(c);
  double total = 0;
  for (int64_t j = 0; j < S; ++j) total += alpha[j] = std::exp(scale * dot(q_, h_[j], D));
  for (int64_t j = 0; j < S; ++j) {
    alpha[j] /= total;
    for (int64_t d = 0; d < D; ++d) c_[d] += alpha[j] * h_[j][d];
  }
  return record("attention", {q, h}, c, [=](const Tensor& g, Grads& grads) {
    Rows dh(grads.into(1));
    Vector g_(g), dq(grads.into(0));
    for (int64_t j = 0; j < S; ++j) {
      double dalpha = dot(g_, h_[j], D);
#ifdef ANSWER
      double delta = alpha[j] * (dalpha - dot(g_, c_, D));
#else
      double delta = alpha[j] * (1 - alpha[j]) * dalpha;
#endif
      for (int64_t d = 0; d < D; ++d) {
        dq[d] += scale * delta * h_[j][d];
        dh[j][d] += alpha[j] * g_[d] + scale * delta * q_[d];
      }
    }
  });
}

int main() {
  return lens::check(
      "Attention", [](auto& in) { return attention(in[0], in[1]); },
      {{"q", lens::random({4}, 1)}, {"h", lens::random({5, 4}, 2), {"he", "does", "not", "like", "apples"}}});
}
