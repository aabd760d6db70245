#include <gradus/ops/where.h>

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>
#include <gradus/walk.h>

namespace gradus {
namespace {

// x where the condition is `kept`, 0 elsewhere; all of one shape.
Tensor masked(const Tensor& condition, const Tensor& x, bool kept) {
  auto choose = [c = condition.u8(), kept](const auto* in, auto* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = (c[i] != 0) == kept ? in[i] : 0;
  };
  return by_kernel("where", choose, x);
}

}  // namespace

Var where(const Tensor& condition, const Input& a, const Var& b) {
  CheckedAt at(a, b, "where");
  if (!condition.defined() || condition.dtype() != DType::u8)
    refuse("where", "the condition must be u8: {}",
           condition.defined() ? name_of(condition.dtype()) : "undefined");
  Shape shape = broadcast(broadcast(a.shape(), b.shape(), "where"), condition.shape(), "where");
  Tensor c = broadcast_to(condition, shape, "where");
  Tensor y(shape, a.dtype());
  Walk walk(shape, {a.shape(), b.shape()});
  const int64_t n = walk.length();
  with_type(y.dtype(), "where", [&]<class T>(T) {
    const T *pa = data<T>(a.value()), *pb = data<T>(b.value());
    const uint8_t* pc = c.u8();
    T* py = data<T>(y);
    walk.for_each_run([&](int64_t start, const int64_t* offset) {
      const T *p = pa + offset[0], *q = pb + offset[1];
      const int64_t step_p = walk.step(0), step_q = walk.step(1);
      for (int64_t i = 0; i < n; ++i) py[start + i] = pc[start + i] ? p[i * step_p] : q[i * step_q];
    });
  });
  return record("where", {a, b}, y, [c](const Tensor& dy, Grads& dx) {
    if (dx.needed(0)) dx.add(0, masked(c, dy, true));
    if (dx.needed(1)) dx.add(1, masked(c, dy, false));
  });
}

Var where(const Tensor& condition, const Input& a, double b) {
  At at(a.caller());
  return where(condition, a.var(), Var(Tensor::scalar(b, a.dtype())));
}
Var where(const Tensor& condition, double a, const Input& b) {
  At at(b.caller());
  return where(condition, Var(Tensor::scalar(a, b.dtype())), b.var());
}
Var masked_fill(const Input& x, const Tensor& mask, double value) {
  CheckedAt at(x, "masked_fill");
  if (mask.dtype() != DType::u8) refuse("masked_fill", "the mask must be u8: {}", mask.dtype());
  broadcast(x.shape(), mask.shape(), "masked_fill");
  return where(mask, value, x.var());
}

// ---- cases ----

namespace reference {
namespace {

Var chosen(const Var& condition, const Var& a, const Var& b) {
  Tensor c = condition.value().to(a.dtype());
  return a * c + b * (1 - Var(c));
}

}  // namespace
}  // namespace reference

GRADUS_OP_CASES(
    {"where", {Tensor::from({2, 3}, {1, 0, 0, 1, 1, 0}, DType::u8), {2, 3}, {2, 3}},
     [](auto& in) { return where(in[0].value(), in[1], in[2]); }, calls(reference::chosen)},
    {"where: stretch", {Tensor::from({2, 1, 1}, {1, 0}, DType::u8), {4, 1}, {3}},
     [](auto& in) { return where(in[0].value(), in[1], in[2]); }, calls(reference::chosen)},
    {"where: a number elsewhere", {Tensor::from({2, 1}, {1, 0}, DType::u8), {2, 3}},
     [](auto& in) { return where(in[0].value(), in[1], -2); },
     [](auto& in) { return reference::chosen(in[0], in[1], Tensor::scalar(-2, in[1].dtype())); }},
    {"where: a number there", {Tensor::from({2, 1}, {1, 0}, DType::u8), {2, 3}},
     [](auto& in) { return where(in[0].value(), 0.5, in[1]); },
     [](auto& in) { return reference::chosen(in[0], Tensor::scalar(0.5, in[1].dtype()), in[1]); }},
    {"masked_fill", {Tensor::from({3}, {1, 0, 1}, DType::u8), {2, 3}},
     [](auto& in) { return masked_fill(in[1], in[0].value(), -1e9); },
     [](auto& in) { return reference::chosen(in[0], Tensor::scalar(-1e9, in[1].dtype()), in[1]); }});

}  // namespace gradus
