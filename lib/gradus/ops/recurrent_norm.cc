#include <gradus/ops/recurrent_norm.h>

#include <fmt/core.h>

#include <gradus/ops/shape.h>

namespace gradus {

void check_norm(const char* op, const char* name, const NormWeights& norm, int64_t n, const char* n_text,
                DType dtype) {
  auto fits = [&](const Var& v) { return v.defined() && v.shape() == Shape{n}; };
  auto text = [](const Var& v) { return v.defined() ? v.shape().str() : "none"; };
  if (!fits(norm.weight) || (norm.bias.defined() && !fits(norm.bias)))
    fail(op, fmt::format("{} must be [{}] = [{}]: weight {}, bias {}", name, n_text, n, text(norm.weight),
                         text(norm.bias)));
  for (const Var* v : {&norm.weight, &norm.bias})
    if (v->defined() && v->dtype() != dtype)
      fail(op, fmt::format("element types must agree: {} and {}", name_of(dtype), name_of(v->dtype())));
}

RowNorm::RowNorm(const NormWeights& norm, int64_t b, int64_t columns, const RealSteps& real)
    : begin(b),
      n(columns),
      gain(norm.weight.value().rows(b, b + columns)),
      offset(norm.bias.defined() ? norm.bias.value().rows(b, b + columns)
                                 : Tensor::zeros({columns}, norm.weight.dtype())),
      stats(real.empty(2, norm.weight.dtype())) {}

Var reference::normalise(const Var& x, const NormWeights& norm, int64_t begin) {
  int64_t n = x.size(-1);
  Var bias = norm.bias.defined() ? slice(norm.bias, 0, begin, begin + n) : Var(Tensor::zeros({n}, x.dtype()));
  return layer_norm(x, slice(norm.weight, 0, begin, begin + n), bias);
}

}  // namespace gradus
