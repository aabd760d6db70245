#include <gradus/ops/attention_sequence.h>

#include <fmt/core.h>

#include <algorithm>

#include <gradus/kernels/products/gemm.h>
#include <gradus/kernels/softmax.h>
#include <gradus/numeric.h>
#include <gradus/op_case.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/shape.h>

namespace gradus {

// Step by step. Not in the header: there the name would be ambiguous to other references.
namespace reference {
namespace {

Var attention_sequence(const Var& q, const Var& keys, const Var& annotations, double scale,
                       const Tensor& mask) {
  std::vector<Var> contexts;
  for (int64_t t = 0; t < q.size(0); ++t)
    contexts.push_back(
        reference::multiplicative_attention(select(q, 0, t), keys, annotations, scale, mask).context);
  return stack(contexts, 0);
}

}  // namespace
}  // namespace reference

namespace {

using kernels::gemm;

struct Sizes {
  int64_t T, B, S, A, D;
};

struct Sequence {
  Sizes size;
  double scale;
  Tensor q, keys, annotations, mask;
  std::vector<int64_t> real;  // positions up to the last real one, for each sentence
  Tensor weights;             // [T, B, S]

  // Column b of a time-major array [.., B, n] is a matrix with rows B n apart.
  template <class T>
  void forward(T* context) const {
    auto [steps, B, S, A, D] = size;
    Tensor scores({steps, S}, q.dtype()), row_mask({steps, S}, DType::u8);
    for (int64_t b = 0; b < B; ++b) {
      int64_t n = real[b];
      T *e = data<T>(scores), *c = context + b * D;
      if (n == 0) {
        for (int64_t t = 0; t < steps; ++t) std::fill_n(c + t * B * D, D, T(0));
      } else {
        gemm(false, true, steps, n, A, static_cast<T>(scale), data<T>(q) + b * A, B * A,
             data<T>(keys) + b * A, B * A, T(0), e, n);
        kernels::softmax_rows(e, masks_of(b, n, row_mask), e, steps, n);
        gemm(false, false, steps, D, n, T(1), e, n, data<T>(annotations) + b * D, B * D, T(0), c, B * D);
      }
      for (int64_t t = 0; t < steps; ++t) {
        T* w = data<T>(weights) + (t * B + b) * S;
        std::copy_n(e + t * n, n, w);
        std::fill(w + n, w + S, T(0));
      }
    }
  }

  template <class T>
  void backward(const Tensor& dcontext, Grads& dx) const {
    auto [steps, B, S, A, D] = size;
    Tensor a({steps, S}, q.dtype()), de({steps, S}, q.dtype());
    Tensor dq = dx.needed(0) ? Tensor::zeros(q.shape(), q.dtype()) : Tensor();
    Tensor dkeys = dx.needed(1) ? dx.into(1) : Tensor(), dannotations = dx.needed(2) ? dx.into(2) : Tensor();
    T s = static_cast<T>(scale);
    for (int64_t b = 0; b < B; ++b) {
      int64_t n = real[b];
      if (n == 0) continue;
      const T* g = data<T>(dcontext) + b * D;
      T *w = data<T>(a), *d = data<T>(de);
      for (int64_t t = 0; t < steps; ++t) std::copy_n(data<T>(weights) + (t * B + b) * S, n, w + t * n);
      gemm(false, true, steps, n, D, T(1), g, B * D, data<T>(annotations) + b * D, B * D, T(0), d, n);
      kernels::softmax_rows_backward(w, d, d, steps, n);
      if (dannotations.defined())
        gemm(true, false, n, D, steps, T(1), w, n, g, B * D, T(1), data<T>(dannotations) + b * D, B * D);
      if (dq.defined())
        gemm(false, false, steps, A, n, s, d, n, data<T>(keys) + b * A, B * A, T(0), data<T>(dq) + b * A,
             B * A);
      if (dkeys.defined())
        gemm(true, false, n, A, steps, s, d, n, data<T>(q) + b * A, B * A, T(1), data<T>(dkeys) + b * A,
             B * A);
    }
    if (dq.defined()) dx.add(0, dq);
  }

 private:
  // The mask of sentence b for each of the T rows; null when it has no hole.
  const uint8_t* masks_of(int64_t b, int64_t n, const Tensor& rows) const {
    if (!mask.defined()) return nullptr;
    const uint8_t* m = mask.u8() + b * size.S;
    if (std::all_of(m, m + n, [](uint8_t v) { return v != 0; })) return nullptr;
    for (int64_t t = 0; t < size.T; ++t) std::copy_n(m, n, rows.u8() + t * n);
    return rows.u8();
  }
};

Sizes check(const Var& q, const Var& keys, const Var& annotations, const Tensor& mask) {
  const char* op = "multiplicative_attention_sequence";
  if (q.dims() != 3 || keys.dims() != 3 || annotations.dims() != 3 || q.size(1) != keys.size(1) ||
      q.size(2) != keys.size(2) || keys.size(0) != annotations.size(0) || keys.size(1) != annotations.size(1))
    fail(op, fmt::format("q must be [T, B, A], keys [S, B, A], annotations [S, B, D]: {}, {}, {}",
                         q.shape().str(), keys.shape().str(), annotations.shape().str()));
  Sizes s{q.size(0), q.size(1), keys.size(0), q.size(2), annotations.size(2)};
  if (mask.defined() && (mask.dtype() != DType::u8 || mask.shape() != Shape{s.B, s.S}))
    fail(op, fmt::format("the mask must be u8 [B, S] = [{}, {}]: {} {}", s.B, s.S, name_of(mask.dtype()),
                         mask.shape().str()));
  return s;
}

}  // namespace

AttentionSequence multiplicative_attention_sequence(const Input& q, const Var& keys, const Var& annotations,
                                                    double scale, const Tensor& mask) {
  At at(q.caller());
  const char* op = "multiplicative_attention_sequence";
  Sizes s = check(q, keys, annotations, mask);
  Sequence sequence{
      s, scale, q.value(), keys.value(), annotations.value(), mask, {}, Tensor({s.T, s.B, s.S}, q.dtype())};
  for (int64_t b = 0; b < s.B; ++b) {
    int64_t n = s.S;
    while (mask.defined() && n > 0 && !mask.u8()[b * s.S + n - 1]) --n;
    sequence.real.push_back(n);
  }
  Tensor context({s.T, s.B, s.D}, q.dtype()), weights = sequence.weights;
  with_type(q.dtype(), op, [&](auto type) { sequence.forward(data<decltype(type)>(context)); });
  Var out = record(op, {q, keys, annotations}, context,
                   [sequence = std::move(sequence)](const Tensor& dy, Grads& dx) {
                     with_type(dy.dtype(), "multiplicative_attention_sequence",
                               [&](auto type) { sequence.backward<decltype(type)>(dy, dx); });
                   });
  return {out, weights};
}

// ---- cases: T = 3, B = 3, S = 4, A = 5, D = 2; the second sentence is empty, the third has a hole ----

namespace {

Tensor case_mask() {
  Tensor mask = length_mask(Tensor::from_ids({3}, {4, 0, 3}), 4);
  mask.u8()[2 * 4 + 1] = 0;
  return mask;
}

}  // namespace

GRADUS_OP_CASES({"multiplicative_attention_sequence",
                 {{3, 3, 5}, {4, 3, 5}, {4, 3, 2}},
                 [](auto& in) { return multiplicative_attention_sequence(in[0], in[1], in[2]).context; },
                 [](auto& in) { return reference::attention_sequence(in[0], in[1], in[2], 1, {}); }},
                {"multiplicative_attention_sequence: mask",
                 {{3, 3, 5}, {4, 3, 5}, {4, 3, 2}},
                 [](auto& in) {
                   return multiplicative_attention_sequence(in[0], in[1], in[2], 0.7, case_mask()).context;
                 },
                 [](auto& in) { return reference::attention_sequence(in[0], in[1], in[2], 0.7, case_mask()); }},
                {"multiplicative_attention_sequence: dot",
                 {{3, 3, 5}, {4, 3, 5}},
                 [](auto& in) { return multiplicative_attention_sequence(in[0], in[1], in[1]).context; },
                 [](auto& in) { return reference::attention_sequence(in[0], in[1], in[1], 1, {}); }});

}  // namespace gradus
