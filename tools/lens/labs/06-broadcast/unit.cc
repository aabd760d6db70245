// A gain for each unit, the same at all places: y = x g.   x [T, B, D], g [D] -> [T, B, D]
#include <lens/lesson.h>

using namespace gradus;
using lens::Rows, lens::Vector;

Var gain(const Var& x, const Var& g) {
  const int64_t T = x.size(0), B = x.size(1), D = x.size(2);
  Tensor y = Tensor::zeros(x.shape(), DType::f64);
  Rows x_(x.value()), y_(y);
  Vector g_(g.value());
  for (int64_t n = 0; n < T * B; ++n)
    for (int64_t d = 0; d < D; ++d) y_[n][d] = x_[n][d] * g_[d];
  return record("gain", {x, g}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), dx(grads.into(0));
    Vector dg(grads.into(1));
    for (int64_t n = 0; n < T * B; ++n)
      for (int64_t d = 0; d < D; ++d) dx[n][d] += dy_[n][d] * g_[d];
#ifdef ANSWER
    for (int64_t n = 0; n < T * B; ++n)
      for (int64_t d = 0; d < D; ++d) dg[d] += dy_[n][d] * x_[n][d];
#else
    for (int64_t t = 0; t < T; ++t)
      for (int64_t d = 0; d < D; ++d) dg[d] += dy_[t * B][d] * x_[t * B][d];
#endif
  });
}

int main() {
  return lens::check("A gain for each unit", [](auto& in) { return gain(in[0], in[1]); },
                     {{"x", lens::random({3, 2, 3}, 1)}, {"g", lens::random({3}, 2)}});
}
