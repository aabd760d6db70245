#include <gradus/ops/recurrent_norm.h>

#include <fmt/core.h>

#include <gradus/ops/shape.h>

namespace gradus {

void check_norms(const char* op, const RecurrentWeights& w, const NormSizes& sizes, int64_t H, DType dtype) {
  auto text = [](const Var& v) { return v.defined() ? v.shape().str() : "none"; };
  auto check = [&](const char* name, const NormWeights& norm, int64_t times) {
    Shape wanted{times * H};
    auto fits = [&](const Var& v) { return v.defined() && v.shape() == wanted; };
    if (times == 0 && (norm.weight.defined() || norm.bias.defined()))
      fail(op,
           fmt::format("this unit has no {}: weight {}, bias {}", name, text(norm.weight), text(norm.bias)));
    if (times != 0 && (!fits(norm.weight) || (norm.bias.defined() && !fits(norm.bias))))
      fail(op, fmt::format("{} must be [{}hidden_size] = {}: weight {}, bias {}", name,
                           times == 1 ? "" : fmt::format("{} ", times), wanted.str(), text(norm.weight),
                           text(norm.bias)));
    for (const Var* v : {&norm.weight, &norm.bias})
      if (v->defined() && v->dtype() != dtype)
        fail(op, fmt::format("element types must agree: {} and {}", name_of(dtype), name_of(v->dtype())));
  };
  check("norm_ih", w.norm_ih, sizes.ih);
  check("norm_hh", w.norm_hh, sizes.hh);
  check("norm_c", w.norm_c, sizes.c);
  if (w.bias_ih.defined() || w.bias_hh.defined())
    fail(op, fmt::format(
                 "a normalised unit has no biases, the offsets of its norms stand in: bias_ih {}, bias_hh {}",
                 text(w.bias_ih), text(w.bias_hh)));
}

RowNorm::RowNorm(const NormWeights& norm, int64_t b, int64_t columns, const PackedSequence& real)
    : begin(b),
      n(columns),
      gain(norm.weight.value().rows(b, b + columns)),
      offset(norm.bias.defined() ? norm.bias.value().rows(b, b + columns)
                                 : Tensor::zeros({columns}, norm.weight.dtype())),
      stats(real.empty(2, norm.weight.dtype())) {}

Var reference::normalise(const Var& x, const NormWeights& norm, int64_t begin) {
  if (!norm.weight.defined()) return x;
  int64_t n = x.size(-1);
  Var bias = norm.bias.defined() ? slice(norm.bias, 0, begin, begin + n) : Var(Tensor::zeros({n}, x.dtype()));
  return layer_norm(x, slice(norm.weight, 0, begin, begin + n), bias);
}

}  // namespace gradus
