#include <gradus/ops/attention_decoder.h>

#include <algorithm>

#include <gradus/kernels/attention.h>
#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/kernels/products/packed_gemm.h>
#include <gradus/kernels/recurrent.h>
#include <gradus/op_case.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/gru.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/packed_sequence.h>
#include <gradus/ops/recurrence.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/where.h>

namespace gradus {
namespace reference {

AttentionDecoderStates attention_decoder(const AttentionDecoderInputs& in, const Tensor& mask,
                                         const Tensor& lengths, Caller caller) {
  At at(caller);
  int64_t T = in.y.size(0), B = in.y.size(1);
  Tensor active = active_steps(lengths, T, B);
  Var s = in.s0;
  std::vector<Var> out, weights;
  for (int64_t t = 0; t < T; ++t) {
    AttentionStep step =
        reference::additive_attention(linear(s, in.query_weight), in.keys, in.annotations, in.v, mask);
    Var x = concat({select(in.y, 0, t), step.context}, -1);
    Var next = reference::gru_cell(x, s, {in.weight_ih, in.weight_hh, in.bias_ih, in.bias_hh});
    if (lengths.defined()) {
      Tensor real = active.row(t).reshape({B, 1});
      next = where(real, next, s);
      step.context = where(real, step.context, 0);
      step.weights = where(real, step.weights, 0).value();
    }
    s = next;
    out.push_back(concat({s, step.context}, -1));
    weights.push_back(stop_gradient(step.weights));
  }
  return {stack(out, 0), stack(weights, 0).value()};
}

}  // namespace reference

namespace {

using kernels::gemm;
using kernels::PackedMatrix;

struct Sizes {
  int64_t T, B, E, H, S, A, D;
};

Sizes check(const AttentionDecoderInputs& in, const Tensor& mask, const Tensor& lengths) {
  if (in.y.dims() != 3 || in.annotations.dims() != 3 || in.keys.dims() != 3 || in.s0.dims() != 2)
    refuse("attention_decoder",
           "y must be [T, B, E], s0 [B, H], keys [S, B, A], annotations [S, B, D]: {}, {}, {}, {}",
           in.y.shape(), in.s0.shape(), in.keys.shape(), in.annotations.shape());
  Sizes s{in.y.size(0),    in.y.size(1),    in.y.size(2),          in.s0.size(1),
          in.keys.size(0), in.keys.size(2), in.annotations.size(2)};
  auto must_be = [&](const char* what, const Var& v, const Shape& wanted) {
    if (!v.defined()) return;
    if (v.shape() != wanted) refuse("attention_decoder", "{} must be {}: {}", what, wanted, v.shape());
    check_types("attention_decoder", in.y.dtype(), v.dtype());
  };
  must_be("s0", in.s0, {s.B, s.H});
  must_be("keys", in.keys, {s.S, s.B, s.A});
  must_be("annotations", in.annotations, {s.S, s.B, s.D});
  must_be("query_weight", in.query_weight, {s.A, s.H});
  must_be("v", in.v, {s.A});
  must_be("weight_ih", in.weight_ih, {3 * s.H, s.E + s.D});
  must_be("weight_hh", in.weight_hh, {3 * s.H, s.H});
  must_be("bias_ih", in.bias_ih, {3 * s.H});
  must_be("bias_hh", in.bias_hh, {3 * s.H});
  check_mask("attention_decoder", mask, s.B, s.S);
  check_lengths("attention_decoder", lengths, s.T, s.B);
  return s;
}

// Input numbers of the node.
enum { kY, kS0, kKeys, kAnnotations, kQueryWeight, kV, kWeightIh, kWeightHh, kBiasIh, kBiasHh };

// Inside, rows are those of `real`: N of them, without padding, and B sequences sorted by length.
struct Decoder {
  Sizes size;
  PackedSequence real;
  Tensor y;                           // [N, E]
  Tensor s0, keys, annotations, mask;  // sorted
  Tensor w1, v, w_ih, w_hh, b_ih, b_hh;
  Tensor weights{{size.T, size.B, size.S}, y.dtype()};  // sorted; 0 at padding
  Tensor before = real.empty(size.H, y.dtype());        // the states that the steps start from
  Tensor contexts = real.empty(size.D, y.dtype());
  Tensor u = real.empty(size.A, y.dtype());
  Tensor gates = real.empty(4 * size.H, y.dtype());

  // out [T, B, H + D], s_t beside c_t.
  // 1. the embedding half of the input projection, for all steps at once
  // per step: 2. u = W1 s  3. attention  4. the context half of the projection  5. recurrent product  6. gates
  template <class T>
  void forward(T* out) {
    auto [steps, B, E, H, S, A, D] = size;
    int64_t X = E + D, O = H + D, N = real.total();
    Tensor gi = real.empty(3 * H, y.dtype()), gh({B, 3 * H}, y.dtype()), state = s0.clone();
    gemm(false, true, N, 3 * H, E, T(1), data<T>(y), E, data<T>(w_ih), X, T(0), data<T>(gi), 3 * H);  // 1
    if (b_ih.defined()) kernels::add_bias(data<T>(b_ih), data<T>(gi), N, 3 * H);
    // The weights that meet every step are packed once.
    using Packed = PackedMatrix<T>;
    const typename Packed::Plan plan{B, steps};
    const Packed query(Packed::Use::transposed, A, H, data<T>(w1), H, plan);
    const Packed context(Packed::Use::transposed, 3 * H, D, data<T>(w_ih) + E, X, plan);
    const Packed recurrent(Packed::Use::transposed, 3 * H, H, data<T>(w_hh), H, plan);
    T* s_new = data<T>(state);
    for (int64_t t = 0; t < steps; ++t) {
      int64_t first = real.offset(t), n = real.count(t);
      T *s = data<T>(before) + first * H, *u_t = data<T>(u) + first * A, *gi_t = data<T>(gi) + first * 3 * H;
      T *c_t = data<T>(contexts) + first * D, *weights_t = data<T>(weights) + t * B * S;
      std::copy_n(s_new, n * H, s);
      query.product(n, s, H, false, u_t, A);                                                              // 2
      kernels::additive_attention(S, B, A, D, data<T>(keys), data<T>(annotations), u_t, data<T>(v),
                                  mask_data(mask), weights_t, c_t, D, n);  // 3
      std::fill(weights_t + n * S, weights_t + B * S, T(0));
      context.product(n, c_t, D, true, gi_t, 3 * H);                                                      // 4
      recurrent.product(n, s, H, false, data<T>(gh), 3 * H);                                              // 5
      kernels::gru_reset_after(n, H, gi_t, data<T>(gh), data_or_null<T>(b_hh), s,
                               kernels::UpdateGate::keeps_old, s_new, data<T>(gates) + first * 4 * H);  // 6
      for (int64_t i = 0; i < B; ++i) {
        T* row = out + (t * B + real.sequence(i)) * O;
        std::copy_n(s_new + i * H, H, row);
        if (i < n) std::copy_n(c_t + i * D, D, row + H);
        else std::fill_n(row + H, D, T(0));
      }
    }
  }

  // The steps of forward in reverse, then everything that has no recurrence as one product over all steps.
  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, E, H, S, A, D] = size;
    int64_t X = E + D, O = H + D, N = real.total();
    DType type = y.dtype();
    Tensor dgi = real.empty(3 * H, type), dgh = real.empty(3 * H, type), du = real.empty(A, type);
    Tensor dc({steps, B, D}, type), ds = Tensor::zeros({B, H}, type);
    bool direct = dx.needed(kKeys) && real.sorted();
    Tensor dkeys = direct ? dx.into(kKeys) : Tensor::zeros(keys.shape(), type);
    Tensor dv = into_or_zeros(dx, kV, v.shape(), type);
    {  // the packed weights go before the gradients of the weights come
      using Packed = PackedMatrix<T>;
      const typename Packed::Plan plan{B, steps};
      const Packed query(Packed::Use::plain, H, A, data<T>(w1), H, plan);
      const Packed context(Packed::Use::plain, D, 3 * H, data<T>(w_ih) + E, X, plan);
      const Packed recurrent(Packed::Use::plain, H, 3 * H, data<T>(w_hh), H, plan);
      for (int64_t t = steps; t-- > 0;) {
        int64_t first = real.offset(t), n = real.count(t);
        const T* s = data<T>(before) + first * H;
        T *ds_t = data<T>(ds), *dgi_t = data<T>(dgi) + first * 3 * H, *dgh_t = data<T>(dgh) + first * 3 * H;
        T *du_t = data<T>(du) + first * A, *dc_t = data<T>(dc) + t * B * D;
        for (int64_t i = 0; i < B; ++i) {  // a padded step only hands the state's gradient on
          const T* row = data<T>(dout) + (t * B + real.sequence(i)) * O;
          kernels::add_into(row, ds_t + i * H, H);
          if (i < n) std::copy_n(row + H, D, dc_t + i * D);
        }
        kernels::gru_backward(n, H, data<T>(gates) + first * 4 * H, s, ds_t, kernels::UpdateGate::keeps_old,
                              dgi_t, dgh_t, ds_t);          // 6
        recurrent.product(n, dgh_t, 3 * H, true, ds_t, H);  // 5
        context.product(n, dgi_t, 3 * H, true, dc_t, D);    // 4
        kernels::additive_attention_backward<T>(S, B, A, D, data<T>(keys), data<T>(annotations),
                                                data<T>(u) + first * A, data<T>(v), mask_data(mask),
                                                data<T>(weights) + t * B * S, dc_t, D, du_t, data<T>(dv),
                                                data<T>(dkeys), nullptr, n);                        // 3
        query.product(n, du_t, A, true, ds_t, H);                                                   // 2
      }
    }
    // What a gradient has been worked out from goes before the next one takes memory.
    if (dx.needed(kKeys) && !direct) dx.add(kKeys, real.unsort(dkeys));
    dkeys = {};
    if (dx.needed(kS0)) dx.add(kS0, real.unsort(ds));
    if (dx.needed(kQueryWeight))
      gemm(true, false, A, H, N, T(1), data<T>(du), A, data<T>(before), H, T(1),
           data<T>(dx.into(kQueryWeight)), H);
    du = {};
    if (dx.needed(kWeightHh))
      gemm(true, false, 3 * H, H, N, T(1), data<T>(dgh), 3 * H, data<T>(before), H, T(1),
           data<T>(dx.into(kWeightHh)), H);
    if (dx.needed(kBiasHh)) kernels::sum_rows_into(data<T>(dgh), data<T>(dx.into(kBiasHh)), N, 3 * H);
    dgh = {};
    if (dx.needed(kAnnotations)) {  // dH_bs += sum_t a_tbs dc_tb, for each sentence a product over its steps
      T* dh = data<T>(dx.into(kAnnotations));
      for (int64_t i = 0; i < B; ++i)
        gemm(true, false, S, D, real.steps(i), T(1), data<T>(weights) + i * S, B * S, data<T>(dc) + i * D,
             B * D, T(1), dh + real.sequence(i) * D, B * D);
    }
    dc = {};
    if (dx.needed(kY)) {
      Tensor dy = real.empty(E, type);
      gemm(false, false, N, E, 3 * H, T(1), data<T>(dgi), 3 * H, data<T>(w_ih), X, T(0), data<T>(dy), E);
      dx.add(kY, real.unpack(dy, {steps, B, E}));
    }
    if (dx.needed(kWeightIh)) {
      T* dw = data<T>(dx.into(kWeightIh));
      gemm(true, false, 3 * H, E, N, T(1), data<T>(dgi), 3 * H, data<T>(y), E, T(1), dw, X);
      gemm(true, false, 3 * H, D, N, T(1), data<T>(dgi), 3 * H, data<T>(contexts), D, T(1), dw + E, X);
    }
    if (dx.needed(kBiasIh)) kernels::sum_rows_into(data<T>(dgi), data<T>(dx.into(kBiasIh)), N, 3 * H);
  }
};

}  // namespace

AttentionDecoderStates attention_decoder(const AttentionDecoderInputs& in, const Tensor& mask,
                                         const Tensor& lengths, Caller caller) {
  At at(caller);
  Sizes s = check(in, mask, lengths);
  PackedSequence real(lengths, s.T, s.B);
  Decoder d{s,
            real,
            real.pack(in.y.value()),
            real.sort(in.s0.value()),
            real.sort(in.keys.value()),
            real.sort(in.annotations.value()),
            real.sort(mask),
            in.query_weight.value(),
            in.v.value(),
            in.weight_ih.value(),
            in.weight_hh.value(),
            in.bias_ih.value(),
            in.bias_hh.value()};
  Tensor out({s.T, s.B, s.H + s.D}, in.y.dtype()), weights = d.weights;
  Var result = record_unit("attention_decoder", std::move(d),
                           {in.y, in.s0, in.keys, in.annotations, in.query_weight, in.v, in.weight_ih,
                            in.weight_hh, in.bias_ih, in.bias_hh},
                           out);
  return {result, real.unsort(weights)};
}

// ---- cases: T = 3, B = 2, E = 2, H = 3, S = 4, A = 5, D = 2 ----

namespace {

OpCase decoder_case(const std::string& name, const Tensor& mask, const Tensor& lengths) {
  auto with = [=](auto decoder) {
    return [=](const std::vector<Var>& in) {
      AttentionDecoderInputs all{in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8], in[9]};
      return decoder(all, mask, lengths, Caller::current()).states_contexts;
    };
  };
  return {"attention_decoder" + name,
          {{3, 2, 2}, {2, 3}, {4, 2, 5}, {4, 2, 2}, {5, 3}, {5}, {9, 4}, {9, 3}, {9}, {9}},
          with(attention_decoder),
          with(reference::attention_decoder)};
}

Tensor case_mask() { return length_mask(Tensor::from_ids({2}, {4, 2}), 4); }

}  // namespace

GRADUS_OP_CASES(decoder_case("", {}, {}), decoder_case(": mask", case_mask(), {}),
                decoder_case(": lengths", case_mask(), Tensor::from_ids({2}, {1, 3})),
                decoder_case(": sorted lengths", {}, Tensor::from_ids({2}, {2, 0})));

}  // namespace gradus
