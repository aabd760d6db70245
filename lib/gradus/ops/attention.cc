#include <gradus/ops/attention.h>

#include <algorithm>

#include <gradus/kernels/attention.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/recurrence.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>
#include <gradus/ops/where.h>

// Backward of one step, g = dc the gradient of the context:
//   da_s = H_s . g                         what each weight could gain
//   de_s = a_s (da_s - sum_k a_k da_k)     softmax: = a_s g . (H_s - c)
//   dH_s = a_s g                           value path
// additive, T_s = tanh(u + keys_s):
//   dv = sum_s de_s T_s,  dz_s = de_s v (1 - T_s^2),  du = sum_s dz_s,  dkeys_s = dz_s      score path
// multiplicative:
//   dq = scale sum_s de_s keys_s,  dkeys_s = scale de_s q

namespace gradus {

Tensor length_mask(const Input& input, int64_t S) {
  At at(input.caller());
  const Tensor& lengths = input.value();
  if (lengths.dtype() != DType::i32 || lengths.dims() != 1)
    refuse("length_mask", "lengths must be i32 [B]: {} {}", lengths.dtype(), lengths.shape());
  int64_t B = lengths.size(0);
  check_lengths("length_mask", lengths, S, B);
  Tensor mask = Tensor::zeros({B, S}, DType::u8);
  for (int64_t b = 0; b < B; ++b) std::fill_n(mask.u8() + b * S, lengths.i32()[b], uint8_t{1});
  return mask;
}

namespace reference {
namespace {

// weights [B, S] from scores [S, B]; context [B, D].
AttentionStep attend(const Var& scores, const Var& annotations, const Tensor& mask) {
  Var weights = softmax(transpose(scores, 0, 1), {.axis = -1, .mask = mask});
  int64_t S = annotations.size(0), B = annotations.size(1);
  // A masked annotation may be NaN, and 0 x NaN is NaN: take it out before the sum.
  Var real = annotations;
  if (mask.defined()) {
    Var keep = reshape(transpose(mask.to(scores.dtype()), 0, 1), {S, B, 1});
    real = where(keep.value().to(DType::u8), annotations, 0);
  }
  return {sum(real * reshape(transpose(weights, 0, 1), {S, B, 1}), {.axes = {0}}), weights};
}

}  // namespace

AttentionStep additive_attention(const Input& u, const Var& keys, const Var& annotations, const Var& v,
                                 const Tensor& mask) {
  At at(u.caller());
  return attend(sum(tanh(keys + u) * v, {.axes = {-1}}), annotations, mask);
}

AttentionStep multiplicative_attention(const Input& q, const Var& keys, const Var& annotations, double scale,
                                       const Tensor& mask) {
  At at(q.caller());
  return attend(sum(keys * q, {.axes = {-1}}) * scale, annotations, mask);
}

}  // namespace reference

namespace {

// One step of either attention: additive where v is defined.
struct Step {
  int64_t S, B, A, D;
  Tensor query, keys, annotations, v, mask, weights;
  double scale;

  template <class T>
  void forward(T* context) const {
    if (v.defined())
      kernels::additive_attention(S, B, A, D, data<T>(keys), data<T>(annotations), data<T>(query),
                                  data<T>(v), mask_data(mask), data<T>(weights), context, D);
    else
      kernels::multiplicative_attention(S, B, A, D, data<T>(keys), data<T>(annotations), data<T>(query),
                                        static_cast<T>(scale), mask_data(mask), data<T>(weights), context, D);
  }

  template <class T>
  void backward(const Tensor& dcontext, Grads& dx) const {
    const T* dc = data<T>(dcontext);
    const T *q = data<T>(query), *key = data<T>(keys), *h = data<T>(annotations), *w = data<T>(weights);
    Tensor dquery(query.shape(), query.dtype());
    Tensor dkeys = into_if_needed(dx, 1), dannotations = into_if_needed(dx, 2);
    T *dq = data<T>(dquery), *dkey = data_or_null<T>(dkeys), *dh = data_or_null<T>(dannotations);
    if (v.defined()) {
      Tensor dv = into_or_zeros(dx, 3, v.shape(), v.dtype());
      kernels::additive_attention_backward(S, B, A, D, key, h, q, data<T>(v), mask_data(mask), w, dc, D, dq,
                                           data<T>(dv), dkey, dh);
    } else {
      kernels::multiplicative_attention_backward(S, B, A, D, key, h, q, static_cast<T>(scale),
                                                 mask_data(mask), w, dc, D, dq, dkey, dh);
    }
    dx.add(0, dquery);
  }
};

AttentionStep attend(const char* op, const std::vector<Var>& inputs, const Tensor& mask, double scale) {
  const Var &query = inputs[0], &keys = inputs[1], &annotations = inputs[2];
  for (const Var& x : inputs) check_operands(query, x, op);
  if (keys.dims() != 3 || annotations.dims() != 3 || keys.size(0) != annotations.size(0) ||
      keys.size(1) != annotations.size(1))
    refuse(op, "keys must be [S, B, A] and annotations [S, B, D]: keys {}, annotations {}", keys.shape(),
           annotations.shape());
  int64_t S = keys.size(0), B = keys.size(1), A = keys.size(2), D = annotations.size(2);
  if (query.shape() != Shape{B, A})
    refuse(op, "the query must be [B, A] = [{}, {}]: query {}, keys {}", B, A, query.shape(), keys.shape());
  check_mask(op, mask, B, S);
  Tensor v = inputs.size() > 3 ? inputs[3].value() : Tensor();
  if (inputs.size() > 3 && v.shape() != Shape{A}) refuse(op, "v must be [A] = [{}]: v {}", A, v.shape());
  Tensor weights({B, S}, query.dtype()), context({B, D}, query.dtype());
  Step step{S, B, A, D, query.value(), keys.value(), annotations.value(), v, mask, weights, scale};
  return {record_unit(op, std::move(step), inputs, context), weights};
}

}  // namespace

AttentionStep additive_attention(const Input& u, const Var& keys, const Var& annotations, const Var& v,
                                 const Tensor& mask) {
  At at(u.caller());
  return attend("additive_attention", {u, keys, annotations, v}, mask, 1);
}

AttentionStep multiplicative_attention(const Input& q, const Var& keys, const Var& annotations, double scale,
                                       const Tensor& mask) {
  At at(q.caller());
  return attend("multiplicative_attention", {q, keys, annotations}, mask, scale);
}

// ---- cases: S = 4, B = 3, A = 5, D = 2; the second query has nothing to look at ----

namespace {

OpCase additive_case(const char* name, const Tensor& mask) {
  auto with = [=](auto attention) {
    return [=](auto& in) { return attention(in[0], in[1], in[2], in[3], mask).context; };
  };
  return {name,
          {{3, 5}, {4, 3, 5}, {4, 3, 2}, {5}},
          with(additive_attention),
          with(reference::additive_attention)};
}

}  // namespace

GRADUS_OP_CASES(
    additive_case("additive_attention", {}), additive_case("additive_attention: mask", case_mask()),
    {"multiplicative_attention: general",
     {{3, 5}, {4, 3, 5}, {4, 3, 2}},
     [](auto& in) { return multiplicative_attention(in[0], in[1], in[2], 0.7, case_mask()).context; },
     [](auto& in) {
       return reference::multiplicative_attention(in[0], in[1], in[2], 0.7, case_mask()).context;
     }},
    {"multiplicative_attention: dot",
     {{3, 5}, {4, 3, 5}},
     [](auto& in) { return multiplicative_attention(in[0], in[1], in[1]).context; },
     [](auto& in) { return reference::multiplicative_attention(in[0], in[1], in[1]).context; }});

}  // namespace gradus
