// Chapter 4: tanh, sigmoid and a gate. Formulas: `lens lesson 4`.
#include <lens/lesson.h>

using namespace gradus;
using lens::Rows;

// y = s(a) tanh(b), elementwise.   a [N, K], b [N, K] -> y [N, K]
Var gated(const Var& a, const Var& b) {
  const int64_t N = a.size(0), K = a.size(1);
  Tensor y = lens::zeros({N, K});
  Rows a_(a.value()), b_(b.value()), s_(lens::zeros({N, K})), t_(lens::zeros({N, K})), y_(y);
  for (int64_t n = 0; n < N; ++n)
    for (int64_t k = 0; k < K; ++k) {
      s_[n][k] = 1 / (1 + std::exp(-a_[n][k]));
      t_[n][k] = std::tanh(b_[n][k]);
      y_[n][k] = s_[n][k] * t_[n][k];
    }
  return record("gate", {a, b}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), da(grads.into(0)), db(grads.into(1));
    for (int64_t n = 0; n < N; ++n)
      for (int64_t k = 0; k < K; ++k) {
        // ---- your turn: both derivatives ----
#ifdef ANSWER
        da[n][k] += dy_[n][k] * t_[n][k] * s_[n][k] * (1 - s_[n][k]);
        db[n][k] += dy_[n][k] * s_[n][k] * (1 - t_[n][k] * t_[n][k]);
#else
        da[n][k] += dy_[n][k] * t_[n][k] * a_[n][k] * (1 - a_[n][k]);
        db[n][k] += dy_[n][k] * s_[n][k] * (1 - b_[n][k] * b_[n][k]);
#endif
        // ---- end ----
      }
  });
}

int main() {
  return lens::check("A gate", [](auto& in) { return gated(in[0], in[1]); },
                     {{"a", lens::random({2, 4}, 1)}, {"b", lens::random({2, 4}, 2)}}, {.exercise = "gate"});
}
