// Chapter 3: broadcasting. Formulas and shapes: `lens lesson 3`.
#include <lens/lesson.h>

using namespace gradus;
using lens::Rows, lens::Vector;

// y = x + b.   x [N, K], b [K] -> y [N, K]
Var add_bias(const Var& x, const Var& b) {
  const int64_t N = x.size(0), K = x.size(1);
  Tensor y = lens::zeros({N, K});
  Rows x_(x.value()), y_(y);
  Vector b_(b.value());
  for (int64_t n = 0; n < N; ++n)
    for (int64_t k = 0; k < K; ++k) y_[n][k] = x_[n][k] + b_[k];
  return record("bias", {x, b}, y, [=](const Tensor& dy, Grads& grads) {
    grads.add(0, dy);
    Rows dy_(dy);
    Vector db(grads.into(1));
    // ---- your turn: b was added to every row ----
#ifdef ANSWER
    for (int64_t n = 0; n < N; ++n)
      for (int64_t k = 0; k < K; ++k) db[k] += dy_[n][k];
#else
    for (int64_t k = 0; k < K; ++k) db[k] += dy_[0][k];
#endif
    // ---- end ----
  });
}

int main() {
  return lens::check("Broadcasting", [](auto& in) { return add_bias(in[0], in[1]); },
                     {{"x", lens::random({4, 3}, 1)}, {"b", lens::random({3}, 2)}}, {.exercise = "bias"});
}
