#pragma once

// Internal: what the fused recurrent ops (rnn, lstm, gru) share. Not installed.
//
// All of them are, over time,  pre_t = W_ih x_t + b_ih + W_hh (m h_{t-1}) + b_hh,  then a pointwise step.
// Only the recurrent product has to wait for its turn: W_ih x is one product over all steps, and once all
// dpre_t are there so are the gradients of x, W_ih, W_hh and the biases.

#include <algorithm>
#include <functional>

#include <gradus/autograd.h>
#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/gemm.h>
#include <gradus/kernels/packed_gemm.h>
#include <gradus/numeric.h>
#include <gradus/ops/real_steps.h>

namespace gradus {

struct RecurrentSizes {
  int64_t T, B, I, H;
};

/// Shapes and element types of x [T, B, I] (or [B, I], a cell), h [B, H] or undefined, weight_ih [G H, I],
/// weight_hh [G H, H], biases [G H] or undefined, lengths i32 [B] or undefined. @throws Error naming the
/// rule.
RecurrentSizes check_recurrence(const char* op, int64_t gates, const Var& x, const Var& h,
                                const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
                                const Var& bias_hh, const Tensor& lengths);

/// lengths i32 [B] in 0 .. T, or undefined.
void check_lengths(const char* op, const Tensor& lengths, int64_t T, int64_t B);

/// A state beside h: its name for the error, [B, H] or undefined.
void check_state(const char* op, const char* name, const Var& state, const RecurrentSizes& size, DType dtype);

/// u8 [T, B], 1 where step t of sequence b is real; undefined without lengths.
Tensor active_steps(const Tensor& lengths, int64_t T, int64_t B);

namespace reference {
/// The loop over time of the composed twins: step(t) makes the state [B, H] after time t from the one before,
/// which padded steps keep. All states [T, B, H].
Var over_time(int64_t T, const Var& start, bool reverse, const Tensor& lengths,
              const std::function<Var(int64_t t, const Var& state)>& step);
}  // namespace reference

/// The part of rnn and lstm that is the same, G = gates blocks of H rows in the weights. Inputs of the node:
/// x, h0, weight_ih, weight_hh, bias_ih, bias_hh. Inside, rows are those of `real`: N of them, without
/// padding, and B states sorted by length. A padded step is one that a state, or its gradient, takes no part
/// in.
struct Recurrence {
  RecurrentSizes size;
  int64_t gates;
  bool reverse;
  Tensor w_ih, w_hh, b_ih, b_hh;
  RealSteps real;
  Tensor x;     // [N, I]
  Tensor h0;    // [B, H]
  Tensor mask;  // [B, H], the factor m on the state that the recurrent product sees; undefined: 1
  Tensor seen;  // [N, H] = m h_{t-1}
  Shape input_shape;

  int64_t width() const { return gates * size.H; }
  int64_t time(int64_t k) const { return reverse ? size.T - 1 - k : k; }
  template <class T>
  kernels::PackedMatrix<T> packed(typename kernels::PackedMatrix<T>::Use use) const {
    bool forward = use == kernels::PackedMatrix<T>::Use::transposed;
    int64_t n = forward ? width() : size.H, k = forward ? size.H : width();
    return {use, n, k, data<T>(w_hh), size.H, {size.B, size.T}};
  }

  /// pre [N, G H] = W_ih x + b_ih + b_hh
  template <class T>
  void project(T* pre) const {
    int64_t rows = real.total(), n = width();
    const T *in = data<T>(x), *w = data<T>(w_ih);
    kernels::gemm(false, true, rows, n, size.I, T(1), in, size.I, w, size.I, T(0), pre, n);
    if (b_ih.defined()) kernels::add_bias(data<T>(b_ih), pre, rows, n);
    if (b_hh.defined()) kernels::add_bias(data<T>(b_hh), pre, rows, n);
  }
  /// pre_t += W_hh (m h), for the real rows of time t; h [B, H] is the state before it.
  template <class T>
  void recur(const kernels::PackedMatrix<T>& w, int64_t t, const T* h, T* pre_t) const {
    T* kept = data<T>(seen) + real.offset(t) * size.H;
    int64_t n = real.count(t) * size.H;
    if (mask.defined()) {
      const T* m = data<T>(mask);
      for (int64_t i = 0; i < n; ++i) kept[i] = m[i] * h[i];
    } else {
      std::copy_n(h, n, kept);
    }
    w.product(real.count(t), kept, size.H, true, pre_t, width());
  }
  /// dh += m (dpre_t W_hh); scratch [B, H] is used with a mask.
  template <class T>
  void recur_back(const kernels::PackedMatrix<T>& w, int64_t t, const T* dpre_t, T* scratch, T* dh) const {
    if (!mask.defined()) return w.product(real.count(t), dpre_t, width(), true, dh, size.H);
    w.product(real.count(t), dpre_t, width(), false, scratch, size.H);
    const T* m = data<T>(mask);
    for (int64_t i = 0, n = real.count(t) * size.H; i < n; ++i) dh[i] += m[i] * scratch[i];
  }
  /// out_t [B, H] = the states, in the order of the sequences.
  template <class T>
  void put(const T* states, T* out_t) const {
    if (real.sorted()) std::copy_n(states, size.B * size.H, out_t);
    else
      for (int64_t i = 0; i < size.B; ++i)
        std::copy_n(states + i * size.H, size.H, out_t + real.sequence(i) * size.H);
  }
  /// dh += dout_t, which is in the order of the sequences.
  template <class T>
  void take(const T* dout_t, T* dh) const {
    if (real.sorted()) kernels::add_into(dout_t, dh, size.B * size.H);
    else
      for (int64_t i = 0; i < size.B; ++i)
        kernels::add_into(dout_t + real.sequence(i) * size.H, dh + i * size.H, size.H);
  }
  /// From dpre [N, G H] of all steps and dh0 [B, H] the gradients of the six inputs.
  template <class T>
  void finish(const Tensor& dpre, const Tensor& dh0, Grads& dx) const {
    int64_t rows = real.total(), n = width(), I = size.I, H = size.H;
    const T* g = data<T>(dpre);
    if (dx.needed(0)) {
      Tensor of_x({rows, I}, x.dtype());
      kernels::gemm(false, false, rows, I, n, T(1), g, n, data<T>(w_ih), I, T(0), data<T>(of_x), I);
      dx.add(0, real.unpack(of_x, input_shape));
    }
    if (dx.needed(1)) dx.add(1, real.unsort(dh0));
    if (dx.needed(2))
      kernels::gemm(true, false, n, I, rows, T(1), g, n, data<T>(x), I, T(1), data<T>(dx.into(2)), I);
    if (dx.needed(3))
      kernels::gemm(true, false, n, H, rows, T(1), g, n, data<T>(seen), H, T(1), data<T>(dx.into(3)), H);
    for (int bias : {4, 5})
      if (dx.needed(bias)) kernels::sum_rows_into(g, data<T>(dx.into(bias)), rows, n);
  }
};

/// Checks, sorts and packs; h0 becomes zeros where undefined. T = 1 for x [B, I].
Recurrence make_recurrence(const char* op, int64_t gates, const Var& x, const Var& h0, const Var& weight_ih,
                           const Var& weight_hh, const Var& bias_ih, const Var& bias_hh, bool reverse,
                           const Tensor& lengths, const Tensor& state_mask);

}  // namespace gradus
