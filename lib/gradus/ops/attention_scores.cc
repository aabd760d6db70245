#include <gradus/ops/attention_scores.h>

#include <functional>

#include <gradus/kernels/elementwise.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>
#include <gradus/walk.h>

namespace gradus {

namespace reference {
namespace {

Var additive_scores(const Var& u, const Var& keys, const Var& v) {
  return transpose(sum(tanh(keys + u) * v, {.axes = {-1}}), 0, 1);
}

Var multiplicative_scores(const Var& q, const Var& keys, double scale) {
  return transpose(sum(keys * q, {.axes = {-1}}), 0, 1) * scale;
}

Var weighted_sum(const Var& weights, const Var& annotations, const Tensor& mask) {
  int64_t S = annotations.size(0), B = annotations.size(1);
  Var w = mask.defined() ? weights * mask.to(weights.dtype()) : weights;
  return sum(annotations * reshape(transpose(w, 0, 1), {S, B, 1}), {.axes = {0}});
}

}  // namespace
}  // namespace reference

namespace {

void check(const char* op, const char* query_name, const Var& query, const Var& keys) {
  if (keys.dims() != 3 || query.shape() != Shape{keys.size(1), keys.size(2)})
    refuse(op, "{} must be [B, A] and keys [S, B, A]: {}, {}", query_name, query.shape(), keys.shape());
}

}  // namespace

Var additive_scores(const Input& u, const Var& keys, const Var& v) {
  const char* op = "additive_scores";
  CheckedAt at(u, keys, op);
  check_operands(keys, v, op);
  check(op, "u", u, keys);
  int64_t S = keys.size(0), B = keys.size(1), A = keys.size(2);
  if (v.shape() != Shape{A}) refuse(op, "v must be [A] = [{}]: {}", A, v.shape());
  Tensor hidden = zip_broadcast(keys.value(), u.value(), op, std::plus<>());
  Tensor e({B, S}, keys.dtype());
  with_type(keys.dtype(), op, [&]<class T>(T) {
    const T* w = data<T>(v.value());
    T *h = data<T>(hidden), *score = data<T>(e);
    kernels::tanh(h, h, hidden.numel());
    for (int64_t t = 0; t < S; ++t)
      for (int64_t b = 0; b < B; ++b, h += A) score[b * S + t] = kernels::dot(h, w, A);
  });
  auto back = [=, v = v.value()]<class T>(T, const Tensor& de, Grads& dx) {
    Tensor du = Tensor::zeros({B, A}, de.dtype());
    Tensor dkeys = into_if_needed(dx, 1), dv = into_if_needed(dx, 2);
    const T *w = data<T>(v), *g = data<T>(de), *h = data<T>(hidden);
    T *to_u = data<T>(du), *to_v = data_or_null<T>(dv), *to_keys = data_or_null<T>(dkeys);
    for (int64_t t = 0; t < S; ++t)
      for (int64_t b = 0; b < B; ++b, h += A) {
        T slope = g[b * S + t];
        if (slope == T(0)) continue;  // masked, or nothing to hand on
        if (to_v) kernels::axpy(slope, h, to_v, A);
        T *u_row = to_u + b * A, *key_row = to_keys ? to_keys + (t * B + b) * A : nullptr;
        for (int64_t a = 0; a < A; ++a) {
          T dz = slope * w[a] * (1 - h[a] * h[a]);
          u_row[a] += dz;
          if (key_row) key_row[a] += dz;
        }
      }
    if (dx.needed(0)) dx.add(0, du);
  };
  return record_typed(op, {u, keys, v}, e, std::move(back));
}

Var multiplicative_scores(const Input& q, const Var& keys, double scale) {
  const char* op = "multiplicative_scores";
  CheckedAt at(q, keys, op);
  check(op, "q", q, keys);
  int64_t S = keys.size(0), B = keys.size(1), A = keys.size(2);
  Tensor e({B, S}, keys.dtype());
  with_type(keys.dtype(), op, [&]<class T>(T) {
    const T *key = data<T>(keys.value()), *query = data<T>(q.value());
    T* score = data<T>(e);
    for (int64_t t = 0; t < S; ++t)
      for (int64_t b = 0; b < B; ++b, key += A)
        score[b * S + t] = static_cast<T>(scale) * kernels::dot(key, query + b * A, A);
  });
  auto back = [=, q = q.value(), keys = keys.value()]<class T>(T, const Tensor& de, Grads& dx) {
    Tensor dq = dx.needed(0) ? Tensor::zeros({B, A}, de.dtype()) : Tensor();
    Tensor dkeys = into_if_needed(dx, 1);
    const T *slope = data<T>(de), *key = data<T>(keys), *query = data<T>(q);
    T *to_q = data_or_null<T>(dq), *to_keys = data_or_null<T>(dkeys);
    for (int64_t t = 0; t < S; ++t)
      for (int64_t b = 0; b < B; ++b) {
        T g = static_cast<T>(scale) * slope[b * S + t];
        if (g == T(0)) continue;  // masked: the key may be anything
        int64_t row = (t * B + b) * A;
        if (to_q) kernels::axpy(g, key + row, to_q + b * A, A);
        if (to_keys) kernels::axpy(g, query + b * A, to_keys + row, A);
      }
    if (dq.defined()) dx.add(0, dq);
  };
  return record_typed(op, {q, keys}, e, std::move(back));
}

Var weighted_sum(const Input& weights, const Var& annotations, const Tensor& mask) {
  const char* op = "weighted_sum";
  CheckedAt at(weights, annotations, op);
  if (annotations.dims() != 3 || weights.shape() != Shape{annotations.size(1), annotations.size(0)})
    refuse(op, "weights must be [B, S] and annotations [S, B, D]: {}, {}", weights.shape(),
           annotations.shape());
  int64_t S = annotations.size(0), B = annotations.size(1), D = annotations.size(2);
  check_mask(op, mask, B, S);
  Tensor context = Tensor::zeros({B, D}, annotations.dtype());
  auto real = [mask, bytes = mask_data(mask), S](int64_t b, int64_t t) { return !bytes || bytes[b * S + t]; };
  with_type(annotations.dtype(), op, [&]<class T>(T) {
    const T *w = data<T>(weights.value()), *h = data<T>(annotations.value());
    T* c = data<T>(context);
    for (int64_t t = 0; t < S; ++t)
      for (int64_t b = 0; b < B; ++b, h += D)
        if (real(b, t)) kernels::axpy(w[b * S + t], h, c + b * D, D);
  });
  auto back = [=, weights = weights.value(), annotations = annotations.value()]<class T>(
                  T, const Tensor& dc, Grads& dx) {
    Tensor dw = dx.needed(0) ? Tensor::zeros({B, S}, dc.dtype()) : Tensor();
    Tensor dh = into_if_needed(dx, 1);
    const T *w = data<T>(weights), *h = data<T>(annotations), *slope = data<T>(dc);
    T *to_w = data_or_null<T>(dw), *to_h = data_or_null<T>(dh);
    for (int64_t t = 0; t < S; ++t)
      for (int64_t b = 0; b < B; ++b) {
        if (!real(b, t)) continue;
        const T* g = slope + b * D;
        int64_t row = (t * B + b) * D;
        if (to_w) to_w[b * S + t] = kernels::dot(h + row, g, D);
        if (to_h) kernels::axpy(w[b * S + t], g, to_h + row, D);
      }
    if (dw.defined()) dx.add(0, dw);
  };
  return record_typed(op, {weights, annotations}, context, std::move(back));
}

// ---- cases: S = 4, B = 3, A = 5, D = 2; the second sentence is empty ----

GRADUS_OP_CASES(
    {"additive_scores", {{3, 5}, {4, 3, 5}, {5}}, calls(additive_scores), calls(reference::additive_scores)},
    {"multiplicative_scores", {{3, 5}, {4, 3, 5}}, calls(multiplicative_scores, 0.7),
     calls(reference::multiplicative_scores, 0.7)},
    {"weighted_sum", {{3, 4}, {4, 3, 2}}, calls(weighted_sum, Tensor()),
     calls(reference::weighted_sum, Tensor())},
    {"weighted_sum: mask", {{3, 4}, {4, 3, 2}}, calls(weighted_sum, case_mask()),
     calls(reference::weighted_sum, case_mask())});

}  // namespace gradus
