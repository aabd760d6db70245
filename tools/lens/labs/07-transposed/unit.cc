// A linear layer with its products written out.   x [N, K], W [O, K] -> y [N, O]
#include <lens/lesson.h>

using namespace gradus;
using lens::dot, lens::Rows;

Var layer(const Var& x, const Var& W) {
  const int64_t N = x.size(0), K = x.size(1), O = W.size(0);
  Tensor y = lens::zeros({N, O});
  Rows x_(x.value()), W_(W.value()), y_(y);
  for (int64_t n = 0; n < N; ++n)
    for (int64_t o = 0; o < O; ++o) y_[n][o] = dot(x_[n], W_[o], K);
  return record("layer", {x, W}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), dx(grads.into(0));
    double* dW = grads.into(1).f64();
    for (int64_t n = 0; n < N; ++n)
      for (int64_t o = 0; o < O; ++o)
        for (int64_t k = 0; k < K; ++k) {
          dx[n][k] += dy_[n][o] * W_[o][k];
#ifdef ANSWER
          dW[o * K + k] += dy_[n][o] * x_[n][k];
#else
          dW[k * O + o] += dy_[n][o] * x_[n][k];
#endif
        }
  });
}

int main() {
  return lens::check("A linear layer", [](auto& in) { return layer(in[0], in[1]); },
                     {{"x", lens::random({4, 3}, 1)}, {"W", lens::random({3, 3}, 2)}});
}
