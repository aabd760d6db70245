// Chapter 2: a linear layer. Formulas and shapes: `lens lesson 2`.
#include <lens/lesson.h>

using namespace gradus;
using lens::dot, lens::Rows;

// y = x W^T.   x [N, I], W [O, I] -> y [N, O]
Var linear_layer(const Var& x, const Var& W) {
  const int64_t N = x.size(0), I = x.size(1), O = W.size(0);
  Tensor y = lens::zeros({N, O});
  Rows x_(x.value()), W_(W.value()), y_(y);
  for (int64_t n = 0; n < N; ++n)
    for (int64_t o = 0; o < O; ++o) y_[n][o] = dot(x_[n], W_[o], I);
  return record("linear", {x, W}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), dx(grads.into(0)), dW(grads.into(1));
    for (int64_t n = 0; n < N; ++n)
      for (int64_t o = 0; o < O; ++o)
        for (int64_t i = 0; i < I; ++i) {
          dx[n][i] += dy_[n][o] * W_[o][i];
          // ---- your turn: dW ----
#ifdef ANSWER
          dW[o][i] += dy_[n][o] * x_[n][i];
#else
          (void)dW;  // delete this line
#endif
          // ---- end ----
        }
  });
}

int main() {
  return lens::check("A linear layer", [](auto& in) { return linear_layer(in[0], in[1]); },
                     {{"x", lens::random({4, 3}, 1)}, {"W", lens::random({3, 3}, 2)}},
                     {.exercise = "linear"});
}
