// One weight for all time steps: y_t = tanh(x_t w).   x [T, D], w [D] -> [T, D]
#include <lens/lesson.h>

using namespace gradus;
using lens::Rows, lens::Vector;

Var over_time(const Var& x, const Var& w) {
  const int64_t T = x.size(0), D = x.size(1);
  Tensor y = lens::zeros({T, D});
  Rows x_(x.value()), y_(y);
  Vector w_(w.value());
  for (int64_t t = 0; t < T; ++t)
    for (int64_t d = 0; d < D; ++d) y_[t][d] = std::tanh(x_[t][d] * w_[d]);
  return record("over_time", {x, w}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), dx(grads.into(0));
    Vector dw(grads.into(1));
    for (int64_t t = T - 1; t >= 0; --t)
      for (int64_t d = 0; d < D; ++d) {
        double inner = dy_[t][d] * (1 - y_[t][d] * y_[t][d]);
        dx[t][d] += inner * w_[d];
#ifdef ANSWER
        dw[d] += inner * x_[t][d];
#else
        dw[d] = inner * x_[t][d];
#endif
      }
  });
}

int main() {
  return lens::check(
      "A weight shared over time", [](auto& in) { return over_time(in[0], in[1]); },
      {{"x", lens::random({4, 3}, 1), {"he", "likes", "red", "apples"}}, {"w", lens::random({3}, 2)}});
}
