// Chapter 16: LayerNorm. Formulas and shapes: `lens lesson 16`.
#include <lens/lesson.h>

using namespace gradus;
using lens::dot, lens::Rows, lens::Vector;

// Each row to mean 0 and variance 1, then a factor and an offset for each column.
// x [T, D], gamma [D], beta [D] -> y [T, D]
Var row_norm(const Var& x, const Var& gamma, const Var& beta) {
  const int64_t T = x.size(0), D = x.size(1);
  const double n = static_cast<double>(D);
  Tensor y = lens::zeros({T, D});
  Rows x_(x.value()), y_(y), xhat(lens::zeros({T, D}));
  Vector gamma_(gamma.value()), beta_(beta.value()), sigma(lens::zeros({T}));
  for (int64_t t = 0; t < T; ++t) {
    double mean = 0, variance = 0;
    for (int64_t d = 0; d < D; ++d) mean += x_[t][d] / n;
    for (int64_t d = 0; d < D; ++d) variance += (x_[t][d] - mean) * (x_[t][d] - mean) / n;
    sigma[t] = std::sqrt(variance + 1e-5);  // a row of equal numbers has variance 0
    for (int64_t d = 0; d < D; ++d) {
      xhat[t][d] = (x_[t][d] - mean) / sigma[t];
      y_[t][d] = gamma_[d] * xhat[t][d] + beta_[d];
    }
  }
  return record("row_norm", {x, gamma, beta}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), dx(grads.into(0));
    Vector dgamma(grads.into(1)), dbeta(grads.into(2));
    for (int64_t t = 0; t < T; ++t) {
      Vector g(lens::zeros({D}));  // what arrives at xhat
      for (int64_t d = 0; d < D; ++d) g[d] = dy_[t][d] * gamma_[d];
        // ---- your turn: dgamma and dbeta; dx, with the mean and sigma depending on every x of the row ----
#ifdef ANSWER
      double mean = 0, along = dot(g, xhat[t], D) / n;
      for (int64_t d = 0; d < D; ++d) mean += g[d] / n;
      for (int64_t d = 0; d < D; ++d) {
        dgamma[d] += dy_[t][d] * xhat[t][d];
        dbeta[d] += dy_[t][d];
        dx[t][d] += (g[d] - mean - xhat[t][d] * along) / sigma[t];
      }
#else
      (void)dgamma, (void)dbeta;  // delete this line
      for (int64_t d = 0; d < D; ++d) dx[t][d] += g[d] / sigma[t];
#endif
      // ---- end ----
    }
  });
}

int main() {
  Tensor x = map(lens::random({3, 4}, 1), [](auto v) { return 3 * v + 2; });
  return lens::check(
      "LayerNorm", [](auto& in) { return row_norm(in[0], in[1], in[2]); },
      {{"x", x, {"he", "likes", "apples"}}, {"gamma", lens::random({4}, 2)}, {"beta", lens::random({4}, 3)}},
      {.exercise = "layer-norm"});
}
