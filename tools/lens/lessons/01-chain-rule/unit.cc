// Chapter 1: a value that is used twice. Formulas: `lens lesson 1`.
#include <lens/lesson.h>

using namespace gradus;
using lens::Vector;

// y_i = x_i s(w_i x_i), s the logistic function.   x [N], w [N] -> y [N]
Var swish(const Var& x, const Var& w) {
  const int64_t N = x.numel();
  Tensor y = lens::zeros({N});
  Vector x_(x.value()), w_(w.value()), s_(lens::zeros({N})), y_(y);
  for (int64_t i = 0; i < N; ++i) {
    s_[i] = 1 / (1 + std::exp(-w_[i] * x_[i]));
    y_[i] = x_[i] * s_[i];
  }
  return record("swish", {x, w}, y, [=](const Tensor& dy, Grads& grads) {
    Vector dy_(dy), dx(grads.into(0)), dw(grads.into(1));
    for (int64_t i = 0; i < N; ++i) {
      double slope = s_[i] * (1 - s_[i]);  // of s, at w x
      dw[i] += dy_[i] * x_[i] * slope * x_[i];
      // ---- your turn: x is used twice ----
      dx[i] += dy_[i] * s_[i];
#ifdef ANSWER
      dx[i] += dy_[i] * x_[i] * slope * w_[i];
#endif
      // ---- end ----
    }
  });
}

int main() {
  Tensor x = Tensor::from({6}, {-2, -1, -0.3, 0.3, 1, 2}, DType::f64);
  return lens::check("A value that is used twice", [](auto& in) { return swish(in[0], in[1]); },
                     {{"x", x}, {"w", lens::random({6}, 1)}}, {.exercise = "chain-rule"});
}
