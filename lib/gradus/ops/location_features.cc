#include <gradus/ops/location_features.h>

#include <algorithm>

#include <gradus/ops/cases.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/shape.h>

namespace gradus {

// Composed: the W shifted copies of the row, side by side, times the filters.
namespace reference {
namespace {

Var location_features(const Var& weights, const Var& filters) {
  int64_t B = weights.size(0), S = weights.size(1), W = filters.size(1), r = W / 2;
  Tensor zeros = Tensor::zeros({B, r}, weights.dtype());
  Var padded = concat({Var(zeros), weights, Var(zeros)}, 1);
  std::vector<Var> shifted;
  for (int64_t j = 0; j < W; ++j) shifted.push_back(slice(padded, 1, j, j + S));
  return transpose(linear(stack(shifted, 2), filters), 0, 1);
}

}  // namespace
}  // namespace reference

Var location_features(const Input& weights, const Var& filters) {
  At at(weights.caller());
  const char* op = "location_features";
  check_operands(weights, filters, op);
  if (weights.dims() != 2) fail(op, "weights must be [B, S]: " + weights.shape().str());
  if (filters.dims() != 2 || filters.size(1) % 2 == 0)
    fail(op, "filters must be [K, W] with W odd: " + filters.shape().str());
  int64_t B = weights.size(0), S = weights.size(1), K = filters.size(0), W = filters.size(1), r = W / 2;
  Tensor y = Tensor::zeros({S, B, K}, weights.dtype());
  // f(s, b, j): tap j of position s reads weight s + j - r of sentence b.
  auto each_tap = [B, S, W, r](auto&& f) {
    for (int64_t s = 0; s < S; ++s)
      for (int64_t b = 0; b < B; ++b)
        for (int64_t j = std::max<int64_t>(0, r - s); j < std::min(W, S + r - s); ++j) f(s, b, j);
  };
  with_type(weights.dtype(), op, [&]<class T>(T) {
    const T *w = data<T>(weights.value()), *filter = data<T>(filters.value());
    T* out = data<T>(y);
    each_tap([&](int64_t s, int64_t b, int64_t j) {
      for (int64_t k = 0; k < K; ++k) out[(s * B + b) * K + k] += filter[k * W + j] * w[b * S + s + j - r];
    });
  });
  auto back = [=, weights = weights.value(), filters = filters.value()]<class T>(
                  T, const Tensor& dy, Grads& dx) {
    Tensor dw = into_if_needed(dx, 0), df = into_if_needed(dx, 1);
    const T *g = data<T>(dy), *w = data<T>(weights), *filter = data<T>(filters);
    T *to_w = data_or_null<T>(dw), *to_f = data_or_null<T>(df);
    each_tap([&](int64_t s, int64_t b, int64_t j) {
      const T* row = g + (s * B + b) * K;
      int64_t i = b * S + s + j - r;
      for (int64_t k = 0; k < K; ++k) {
        if (to_w) to_w[i] += row[k] * filter[k * W + j];
        if (to_f) to_f[k * W + j] += row[k] * w[i];
      }
    });
  };
  return record_typed(op, {weights, filters}, y, std::move(back));
}

GRADUS_OP_CASES(
    {"location_features", {{2, 5}, {3, 3}}, calls(location_features), calls(reference::location_features)},
    {"location_features: filters wider than the rows", {{2, 2}, {3, 7}}, calls(location_features),
     calls(reference::location_features)});

}  // namespace gradus
