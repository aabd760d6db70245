// Chapter 5: softmax, whose outputs compete. Formulas: `lens lesson 5`.
#include <lens/lesson.h>

using namespace gradus;
using lens::dot, lens::Rows;

// Over each row.   x [N, K] -> y [N, K]
Var row_softmax(const Var& x) {
  const int64_t N = x.size(0), K = x.size(1);
  Tensor y = lens::zeros({N, K});
  Rows x_(x.value()), y_(y);
  for (int64_t n = 0; n < N; ++n) {
    double total = 0;
    for (int64_t k = 0; k < K; ++k) total += y_[n][k] = std::exp(x_[n][k]);
    for (int64_t k = 0; k < K; ++k) y_[n][k] /= total;
  }
  return record("softmax", {x}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), dx(grads.into(0));
    for (int64_t n = 0; n < N; ++n)
      for (int64_t k = 0; k < K; ++k) {
        // ---- your turn: every y depends on every x of its row ----
#ifdef ANSWER
        dx[n][k] += y_[n][k] * (dy_[n][k] - dot(y_[n], dy_[n], K));
#else
        dx[n][k] += dy_[n][k] * y_[n][k] * (1 - y_[n][k]);
#endif
        // ---- end ----
      }
  });
}

int main() {
  return lens::check("Softmax", [](auto& in) { return row_softmax(in[0]); },
                     {{"x", lens::random({3, 4}, 1), {"he", "likes", "apples"}}}, {.exercise = "softmax"});
}
