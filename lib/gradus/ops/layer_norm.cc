#include <gradus/ops/layer_norm.h>

#include <fmt/core.h>

#include <cmath>

#include <gradus/kernels/elementwise.h>
#include <gradus/numeric.h>
#include <gradus/op_case.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>

namespace gradus {
namespace {

// What a row's backward needs: kept in double, because rows with a large mean and a small spread lose
// everything in the difference otherwise.
struct RowStatistics {
  double mean, inverse_deviation;
};

template <class T>
RowStatistics statistics(const T* x, int64_t n, double eps) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < n; ++i) mean += x[i];
  mean /= static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean);
  variance /= static_cast<double>(n);
  return {mean, 1 / std::sqrt(variance + eps)};
}

}  // namespace

// Composed of elementary ops. Not in the header: there the name would be ambiguous to other references.
namespace reference {
namespace {

Var layer_norm(const Var& x, const Var& gamma, const Var& beta, double eps = 1e-5) {
  ReduceOptions rows{.axes = {-1}, .keep_dims = true};
  Var centred = x - mean(x, rows);
  Var variance = mean(centred * centred, rows);
  return gamma * (centred / sqrt(variance + eps)) + beta;
}

}  // namespace
}  // namespace reference

Var layer_norm(const Var& x, const Var& gamma, const Var& beta, double eps) {
  if (x.dims() == 0 || gamma.shape() != Shape{x.size(-1)} || beta.shape() != gamma.shape())
    fail("layer_norm",
         fmt::format("gamma and beta must be [n] for input [..., n]: input {}, gamma {}, beta {}",
                     x.shape().str(), gamma.shape().str(), beta.shape().str()));
  if (gamma.dtype() != x.dtype() || beta.dtype() != x.dtype())
    fail("layer_norm", fmt::format("element types must agree: input {}, gamma {}, beta {}",
                                   name_of(x.dtype()), name_of(gamma.dtype()), name_of(beta.dtype())));
  int64_t n = x.size(-1), rows = n == 0 ? 0 : x.numel() / n;
  Tensor y(x.shape(), x.dtype()), stats({rows, 2}, DType::f64);
  with_type(x.dtype(), "layer_norm", [&](auto type) {
    using T = decltype(type);
    const T *in = data<T>(x.value()), *scale = data<T>(gamma.value()), *offset = data<T>(beta.value());
    T* out = data<T>(y);
    double* kept = stats.f64();
    for (int64_t r = 0; r < rows; ++r, in += n, out += n, kept += 2) {
      auto [mean, inverse] = statistics(in, n, eps);
      kept[0] = mean, kept[1] = inverse;
      for (int64_t i = 0; i < n; ++i)
        out[i] = scale[i] * static_cast<T>((in[i] - mean) * inverse) + offset[i];
    }
  });
  return record("layer_norm", {x, gamma, beta}, y,
                [n, rows, x = x.value(), gamma = gamma.value(), stats](const Tensor& dy, Grads& dx) {
    with_type(dy.dtype(), "layer_norm", [&](auto type) {
      using T = decltype(type);
      const T *in = data<T>(x), *up = data<T>(dy), *scale = data<T>(gamma);
      const double* kept = stats.f64();
      Tensor normal(Shape{n}, dy.dtype());  // xh of one row
      T* xh = data<T>(normal);
      Tensor d(x.shape(), x.dtype()), dgamma = Tensor::zeros({n}, x.dtype());
      T *out = data<T>(d), *sum = data<T>(dgamma);
      for (int64_t r = 0; r < rows; ++r, in += n, up += n, out += n, kept += 2) {
        double mean_g = 0, mean_g_xh = 0;
        for (int64_t i = 0; i < n; ++i) {
          xh[i] = static_cast<T>((in[i] - kept[0]) * kept[1]);
          sum[i] += up[i] * xh[i];
          double g = up[i] * scale[i];
          mean_g += g;
          mean_g_xh += g * xh[i];
        }
        mean_g /= static_cast<double>(n);
        mean_g_xh /= static_cast<double>(n);
        for (int64_t i = 0; i < n; ++i)
          out[i] = static_cast<T>((up[i] * scale[i] - mean_g - xh[i] * mean_g_xh) * kept[1]);
      }
      dx.add(0, d);
      dx.add(1, dgamma);
      if (dx.needed(2)) {
        Tensor dbeta = dx.into(2);
        kernels::sum_rows_into(data<T>(dy), data<T>(dbeta), rows, n);
      }
    });
  });
}

GRADUS_OP_CASES(
    {"layer_norm", {{3, 5}, {5}, {5}}, [](auto& in) { return layer_norm(in[0], in[1], in[2]); },
     [](auto& in) { return reference::layer_norm(in[0], in[1], in[2]); }},
    {"layer_norm: three axes, large eps", {{2, 2, 4}, {4}, {4}},
     [](auto& in) { return layer_norm(in[0], in[1], in[2], 0.5); },
     [](auto& in) { return reference::layer_norm(in[0], in[1], in[2], 0.5); }},
    {"layer_norm: one vector", {{6}, {6}, {6}}, [](auto& in) { return layer_norm(in[0], in[1], in[2]); },
     [](auto& in) { return reference::layer_norm(in[0], in[1], in[2]); }});

}  // namespace gradus
