#include <gradus/ops/recurrent_norm.h>

#include <gradus/ops/shape.h>

namespace gradus {

std::vector<Var> recurrent_inputs(const char* op, const Var& x, const std::vector<Var>& states,
                                  const RecurrentWeights& w, const NormSizes& sizes) {
  std::vector<Var> inputs = {x, states[0], w.ih, w.hh, w.bias_ih, w.bias_hh};
  inputs.insert(inputs.end(), states.begin() + 1, states.end());
  if (!w.normalised()) return inputs;
  auto text = [](const Var& v) { return v.defined() ? v.shape().str() : "none"; };
  auto add = [&](const char* name, const NormWeights& norm, int64_t times) {
    Shape wanted{times * w.hh.size(1)};
    auto fits = [&](const Var& v) { return v.defined() && v.shape() == wanted; };
    if (times == 0 && (norm.weight.defined() || norm.bias.defined()))
      refuse(op, "this unit has no {}: weight {}, bias {}", name, text(norm.weight), text(norm.bias));
    if (times != 0 && (!fits(norm.weight) || (norm.bias.defined() && !fits(norm.bias))))
      refuse(op, "{} must be [{}hidden_size] = {}: weight {}, bias {}", name,
             times == 1 ? "" : fmt::format("{} ", times), wanted, text(norm.weight), text(norm.bias));
    for (const Var* v : {&norm.weight, &norm.bias})
      if (v->defined()) check_types(op, x.dtype(), v->dtype());
    if (times != 0) inputs.insert(inputs.end(), {norm.weight, norm.bias});
  };
  add("norm_ih", w.norm_ih, sizes.ih);
  add("norm_hh", w.norm_hh, sizes.hh);
  add("norm_c", w.norm_c, sizes.c);
  if (w.bias_ih.defined() || w.bias_hh.defined())
    refuse(op, "a normalised unit has no biases, the offsets of its norms stand in: bias_ih {}, bias_hh {}",
           text(w.bias_ih), text(w.bias_hh));
  return inputs;
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
