// Chapter 17: residual connections and depth. Formulas and shapes: `lens lesson 17`.
#include <lens/lesson.h>

#include <cstdio>

using namespace gradus;
using lens::dot, lens::Rows, lens::Vector;

// y = x + W2 u, u = relu(W1 n), n = norm(x) without gamma and beta.
// x [T, D], W1 [F, D], W2 [D, F] -> y [T, D]
Var block(const Var& x, const Var& W1, const Var& W2) {
  const int64_t T = x.size(0), D = x.size(1), F = W1.size(0);
  Tensor n = layer_norm(x.value(), Tensor::ones({D}, DType::f64), lens::zeros({D})).value();
  Tensor u = relu(linear(n, W1.value())).value(), y = (Var(x.value()) + linear(u, W2.value())).value();
  Rows x_(x.value()), W1_(W1.value()), W2_(W2.value()), n_(n), u_(u);
  return record("block", {x, W1, W2}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), dx(grads.into(0)), dW1(grads.into(1)), dW2(grads.into(2));
    for (int64_t t = 0; t < T; ++t) {
      const double sigma = dot(n_[t], x_[t], D) / dot(n_[t], n_[t], D);  // n = (x - mean) / sigma, sum n = 0
      for (int64_t d = 0; d < D; ++d) dx[t][d] += dy_[t][d];             // the residual path
        // ---- your turn: the path through W2, relu, W1 and the norm ----
#ifdef ANSWER
      Vector dn(lens::zeros({D}));
      for (int64_t f = 0; f < F; ++f) {
        double du = 0;
        for (int64_t d = 0; d < D; ++d) dW2[d][f] += dy_[t][d] * u_[t][f], du += dy_[t][d] * W2_[d][f];
        if (u_[t][f] <= 0) continue;  // relu
        for (int64_t d = 0; d < D; ++d) dW1[f][d] += du * n_[t][d], dn[d] += du * W1_[f][d];
      }
      double mean = 0, along = dot(dn, n_[t], D) / static_cast<double>(D);
      for (int64_t d = 0; d < D; ++d) mean += dn[d] / static_cast<double>(D);
      for (int64_t d = 0; d < D; ++d) dx[t][d] += (dn[d] - mean - n_[t][d] * along) / sigma;
#else
      (void)sigma, (void)F, (void)dW1, (void)dW2;  // delete this line
#endif
      // ---- end ----
    }
  });
}

// 24 layers as they are made: the gradient at some of them beside the last, and how alike 8 words become.
void depth(const char* name, bool norm, bool residual) {
  Rng rng(3);
  auto normal = [&](const Shape& s, double size) { return Tensor::normal(s, 0, size, rng, DType::f64); };
  auto length = [](const Var& v) { return sqrt(sum(v * v)).item(); };
  std::vector<Var> x{variable(normal({8, 16}, 1))};
  for (int layer = 0; layer < 24; ++layer) {
    Var W1 = variable(normal({32, 16}, std::sqrt(1 / 48.))),
        W2 = variable(normal({16, 32}, std::sqrt(1 / 96.)));
    Var n = norm ? layer_norm(x.back(), Tensor::ones({16}, DType::f64), lens::zeros({16})) : x.back();
    Var f = linear(relu(linear(n, W1)), W2);
    x.push_back(!residual ? f : norm ? block(x.back(), W1, W2) : x.back() + f);
  }
  Var y = x.back(), unit = y / sqrt(sum(y * y, {.axes = {1}, .keep_dims = true}));
  Gradients grads = backward(sum(y * Var(normal({8, 16}, 1))), {.keep = x});
  std::printf("    %-15s", name);
  for (size_t layer : {24, 18, 12, 6, 0}) std::printf("%9.2g", length(grads[x[layer]]) / length(grads[y]));
  std::printf("   %5.2f\n", (sum(matmul(unit, transpose(unit, 0, 1))).item() - 8) / 56);
}

int main() {
  int wrong = lens::check("Residual", [](auto& in) { return block(in[0], in[1], in[2]); },
                          {{"x", lens::random({3, 4}, 1), {"he", "likes", "apples"}},
                           {"W1", lens::random({5, 4}, 2)},
                           {"W2", lens::random({4, 5}, 3)}},
                          {.exercise = "residual"});
  if (wrong) return 1;
  std::printf("    behind layer          24       18       12        6        0   alike\n");
  depth("f(x)", false, false), depth("f(norm(x))", true, false);
  depth("x + f(x)", false, true), depth("x + f(norm(x))", true, true);
  std::printf("\n");
  return 0;
}
