// LayerNorm with its backward by hand.   x [T, D], gamma [D], beta [D] -> [T, D]
#include <lens/lesson.h>

using namespace gradus;
using lens::dot, lens::Rows, lens::Vector;

Var row_norm(const Var& x, const Var& gamma, const Var& beta) {
  const int64_t T = x.size(0), D = x.size(1);
  const double n = static_cast<double>(D);
  Tensor y = layer_norm(x.value(), gamma.value(), beta.value()).value();
  Tensor of_x = layer_norm(x.value(), Tensor::ones({D}, DType::f64), lens::zeros({D})).value();
  Rows x_(x.value()), xhat(of_x);
  Vector gamma_(gamma.value());
  return record("row_norm", {x, gamma, beta}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), dx(grads.into(0));
    Vector dgamma(grads.into(1)), dbeta(grads.into(2)), g(lens::zeros({D}));
    for (int64_t t = 0; t < T; ++t) {
      const double sigma = dot(xhat[t], x_[t], D) / dot(xhat[t], xhat[t], D);
      double mean = 0;
      for (int64_t d = 0; d < D; ++d) g[d] = dy_[t][d] * gamma_[d];
      for (int64_t d = 0; d < D; ++d) mean += g[d] / n;
#ifdef ANSWER
      const double along = dot(g, xhat[t], D) / n;
#endif
      for (int64_t d = 0; d < D; ++d) {
        dgamma[d] += dy_[t][d] * xhat[t][d];
        dbeta[d] += dy_[t][d];
#ifdef ANSWER
        dx[t][d] += (g[d] - mean - xhat[t][d] * along) / sigma;
#else
        dx[t][d] += (g[d] - mean) / sigma;
#endif
      }
    }
  });
}

int main() {
  Tensor x = map(lens::random({3, 4}, 1), [](auto v) { return 3 * v + 2; });
  return lens::check(
      "LayerNorm", [](auto& in) { return row_norm(in[0], in[1], in[2]); },
      {{"x", x, {"he", "likes", "apples"}}, {"gamma", lens::random({4}, 2)}, {"beta", lens::random({4}, 3)}});
}
