#include <gradus/ops/attention.h>

#include <fmt/core.h>

#include <gradus/kernels/attention.h>
#include <gradus/numeric.h>
#include <gradus/op_case.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
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
    fail("length_mask",
         fmt::format("lengths must be i32 [B]: {} {}", name_of(lengths.dtype()), lengths.shape().str()));
  int64_t B = lengths.size(0);
  Tensor mask({B, S}, DType::u8);
  for (int64_t b = 0; b < B; ++b) {
    int32_t length = lengths.i32()[b];
    if (length < 0 || length > S)
      fail("length_mask", fmt::format("lengths must be in 0 .. {}: {}", S, length));
    for (int64_t s = 0; s < S; ++s) mask.u8()[b * S + s] = s < length;
  }
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
    Tensor keep({S, B, 1}, DType::u8);
    for (int64_t s = 0; s < S; ++s)
      for (int64_t b = 0; b < B; ++b) keep.u8()[s * B + b] = mask.u8()[b * S + s];
    real = where(keep, annotations, Tensor::zeros({1}, annotations.dtype()));
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

struct Sizes {
  int64_t S, B, A, D;
};

Sizes check(const char* op, const Var& query, const Var& keys, const Var& annotations, const Tensor& mask) {
  if (keys.dims() != 3 || annotations.dims() != 3 || keys.size(0) != annotations.size(0) ||
      keys.size(1) != annotations.size(1))
    fail(op, fmt::format("keys must be [S, B, A] and annotations [S, B, D]: keys {}, annotations {}",
                         keys.shape().str(), annotations.shape().str()));
  Sizes s{keys.size(0), keys.size(1), keys.size(2), annotations.size(2)};
  if (query.shape() != Shape{s.B, s.A})
    fail(op, fmt::format("the query must be [B, A] = [{}, {}]: query {}, keys {}", s.B, s.A,
                         query.shape().str(), keys.shape().str()));
  if (mask.defined() && (mask.dtype() != DType::u8 || mask.shape() != Shape{s.B, s.S}))
    fail(op, fmt::format("the mask must be u8 [B, S] = [{}, {}]: {} {}", s.B, s.S, name_of(mask.dtype()),
                         mask.shape().str()));
  return s;
}

// Where the gradient of input i is collected: its accumulator, or scratch when nobody wants it.
Tensor target(Grads& dx, int i, const Tensor& like) {
  return dx.needed(i) ? dx.into(i) : Tensor::zeros(like.shape(), like.dtype());
}

const uint8_t* bytes_of(const Tensor& mask) { return mask.defined() ? mask.u8() : nullptr; }

}  // namespace

AttentionStep additive_attention(const Input& u, const Var& keys, const Var& annotations, const Var& v,
                                 const Tensor& mask) {
  At at(u.caller());
  const char* op = "additive_attention";
  Sizes s = check(op, u, keys, annotations, mask);
  if (v.shape() != Shape{s.A}) fail(op, fmt::format("v must be [A] = [{}]: v {}", s.A, v.shape().str()));
  Tensor weights({s.B, s.S}, u.dtype()), context({s.B, s.D}, u.dtype());
  with_type(u.dtype(), op, [&](auto type) {
    using T = decltype(type);
    kernels::additive_attention(s.S, s.B, s.A, s.D, data<T>(keys.value()), data<T>(annotations.value()),
                                data<T>(u.value()), data<T>(v.value()), bytes_of(mask), data<T>(weights),
                                data<T>(context), s.D);
  });
  Var out = record(op, {u, keys, annotations, v}, context,
                   [s, u = u.value(), keys = keys.value(), annotations = annotations.value(), v = v.value(),
                    mask, weights](const Tensor& dc, Grads& dx) {
                     with_type(dc.dtype(), "additive_attention", [&](auto type) {
                       using T = decltype(type);
                       Tensor du(u.shape(), u.dtype());
                       Tensor dkeys = target(dx, 1, keys), dv = target(dx, 3, v);
                       Tensor dannotations = dx.needed(2) ? dx.into(2) : Tensor();
                       kernels::additive_attention_backward(
                           s.S, s.B, s.A, s.D, data<T>(keys), data<T>(annotations), data<T>(u), data<T>(v),
                           bytes_of(mask), data<T>(weights), data<T>(dc), s.D, data<T>(du), data<T>(dv),
                           data<T>(dkeys),
                           dannotations.defined() ? data<T>(dannotations) : nullptr);
                       if (dx.needed(0)) dx.add(0, du);
                     });
                   });
  return {out, weights};
}

AttentionStep multiplicative_attention(const Input& q, const Var& keys, const Var& annotations, double scale,
                                       const Tensor& mask) {
  At at(q.caller());
  const char* op = "multiplicative_attention";
  Sizes s = check(op, q, keys, annotations, mask);
  Tensor weights({s.B, s.S}, q.dtype()), context({s.B, s.D}, q.dtype());
  with_type(q.dtype(), op, [&](auto type) {
    using T = decltype(type);
    kernels::multiplicative_attention(s.S, s.B, s.A, s.D, data<T>(keys.value()),
                                      data<T>(annotations.value()), data<T>(q.value()), static_cast<T>(scale),
                                      bytes_of(mask), data<T>(weights), data<T>(context), s.D);
  });
  Var out = record(op, {q, keys, annotations}, context,
                   [s, scale, q = q.value(), keys = keys.value(), annotations = annotations.value(), mask,
                    weights](const Tensor& dc, Grads& dx) {
                     with_type(dc.dtype(), "multiplicative_attention", [&](auto type) {
                       using T = decltype(type);
                       Tensor dq(q.shape(), q.dtype());
                       Tensor dkeys = dx.needed(1) ? dx.into(1) : Tensor();
                       Tensor dannotations = dx.needed(2) ? dx.into(2) : Tensor();
                       kernels::multiplicative_attention_backward(
                           s.S, s.B, s.A, s.D, data<T>(keys), data<T>(annotations), data<T>(q),
                           static_cast<T>(scale), bytes_of(mask), data<T>(weights), data<T>(dc), s.D,
                           data<T>(dq), dkeys.defined() ? data<T>(dkeys) : nullptr,
                           dannotations.defined() ? data<T>(dannotations) : nullptr);
                       if (dx.needed(0)) dx.add(0, dq);
                     });
                   });
  return {out, weights};
}

// ---- cases: S = 4, B = 3, A = 5, D = 2; the second query has nothing to look at ----

namespace {
Tensor case_mask() { return length_mask(Tensor::from_ids({3}, {4, 0, 2}), 4); }
}  // namespace

GRADUS_OP_CASES(
    {"additive_attention",
     {{3, 5}, {4, 3, 5}, {4, 3, 2}, {5}},
     [](auto& in) { return additive_attention(in[0], in[1], in[2], in[3]).context; },
     [](auto& in) { return reference::additive_attention(in[0], in[1], in[2], in[3]).context; }},
    {"additive_attention: mask",
     {{3, 5}, {4, 3, 5}, {4, 3, 2}, {5}},
     [](auto& in) { return additive_attention(in[0], in[1], in[2], in[3], case_mask()).context; },
     [](auto& in) { return reference::additive_attention(in[0], in[1], in[2], in[3], case_mask()).context; }},
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
