#pragma once

// Internal: what the fused recurrent ops (rnn, lstm, gru, layer-normalised or not) share. Not installed.
//
// All of them are, over time, two products, W_ih x_t + b_ih and W_hh (m h_{t-1}) + b_hh, then a pointwise
// step. Only the recurrent product has to wait for its turn: W_ih x is one product over all steps, and once
// the gradients of both products are there for all steps so are those of x, W_ih, W_hh and the biases.

#include <algorithm>
#include <functional>

#include <gradus/autograd.h>
#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/kernels/products/packed_gemm.h>
#include <gradus/numeric.h>
#include <gradus/ops/packed_sequence.h>
#include <gradus/ops/recurrent_weights.h>

namespace gradus {

struct RecurrentSizes {
  int64_t T, B, I, H;
};

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

/// The part that the fused ops share. The weights have G = gates blocks of H rows. Inputs of a node: x, h0,
/// weight_ih, weight_hh, then bias_ih and bias_hh where the unit has them. Inside, all is packed as `real`
/// says: N rows without padding, and B states sorted by length. Padded steps leave state and gradient alone.
struct Recurrence {
  RecurrentSizes size;
  int64_t gates;
  bool reverse;
  Tensor w_ih{}, w_hh{}, b_ih{}, b_hh{};
  PackedSequence real;
  /// [N, I] and [B, H]
  Tensor x{}, h0{};
  /// [B, H], the factor m on the state that the recurrent product sees; undefined: 1
  Tensor mask{};
  /// [N, H], m h_{t-1}
  Tensor seen = real.empty(size.H, dtype());
  /// [N, H], what the last block of W_hh meets where that is not `seen`: r m h_{t-1} of a GRU that resets
  /// before the product; else undefined
  Tensor reset_seen{};
  Shape input_shape{};

  int64_t width() const { return gates * size.H; }
  int64_t time(int64_t k) const { return reverse ? size.T - 1 - k : k; }
  DType dtype() const { return x.dtype(); }

  template <class T>
  using Packed = kernels::PackedMatrix<T>;
  template <class T>
  using Use = typename Packed<T>::Use;
  /// W_hh for every step's product: of its G blocks those from `first` to `end`.
  template <class T>
  Packed<T> packed(Use<T> use, int64_t first, int64_t end) const {
    int64_t H = size.H, rows = (end - first) * H;
    bool forward = use == Use<T>::transposed;
    return {use, forward ? rows : H, forward ? H : rows, data<T>(w_hh) + first * H * H, H, {size.B, size.T}};
  }

  /// pre [N, G H] = W_ih x + b_ih + another bias [G H], which may be undefined
  template <class T>
  void project(T* pre, const Tensor& bias = {}) const {
    int64_t rows = real.total(), n = width();
    const T *in = data<T>(x), *w = data<T>(w_ih);
    kernels::gemm(false, true, rows, n, size.I, T(1), in, size.I, w, size.I, T(0), pre, n);
    if (b_ih.defined()) kernels::add_bias(data<T>(b_ih), pre, rows, n);
    if (bias.defined()) kernels::add_bias(data<T>(bias), pre, rows, n);
  }
  /// m h of the real rows of time t, kept; h [B, H] is the state before it.
  template <class T>
  const T* see(int64_t t, const T* h) const {
    T* kept = data<T>(seen) + real.offset(t) * size.H;
    int64_t n = real.count(t) * size.H;
    if (mask.defined()) {
      const T* m = data<T>(mask);
      for (int64_t i = 0; i < n; ++i) kept[i] = m[i] * h[i];
    } else {
      std::copy_n(h, n, kept);
    }
    return kept;
  }
  /// Backward of see(): the accumulator for the gradient of m h. Without a mask it is dh itself; with one it is
  /// `scratch` [B, H], set to 0, and unmask() then adds m times scratch to dh.
  template <class T>
  T* seen_gradient(int64_t t, T* scratch, T* dh) const {
    if (!mask.defined()) return dh;
    std::fill_n(scratch, real.count(t) * size.H, T(0));
    return scratch;
  }
  template <class T>
  void unmask(int64_t t, const T* dseen, T* dh) const {
    if (!mask.defined()) return;
    const T* m = data<T>(mask);
    for (int64_t i = 0, n = real.count(t) * size.H; i < n; ++i) dh[i] += m[i] * dseen[i];
  }
  /// dh += m (d_t W_hh), d_t the gradient of the recurrent product at time t.
  template <class T>
  void recur_back(const Packed<T>& w, int64_t t, const T* d_t, T* scratch, T* dh) const {
    T* dseen = seen_gradient(t, scratch, dh);
    w.product(real.count(t), d_t, width(), true, dseen, size.H);
    unmask(t, dseen, dh);
  }
  /// out_t [B, H] = the states, in the order of the sequences.
  template <class T>
  void put(const T* states, T* out_t) const {
    const int64_t H = size.H, rows = real.sorted() ? size.B : 1;  // at a time
    for (int64_t i = 0; i < size.B; i += rows)
      std::copy_n(states + i * H, rows * H, out_t + real.sequence(i) * H);
  }
  /// dh += dout_t, which is in the order of the sequences.
  template <class T>
  void take(const T* dout_t, T* dh) const {
    const int64_t H = size.H, rows = real.sorted() ? size.B : 1;  // at a time
    for (int64_t i = 0; i < size.B; i += rows)
      kernels::add_into(dout_t + real.sequence(i) * H, dh + i * H, rows * H);
  }
  /// From the gradients of W_ih x and of W_hh (m h) over all steps, [N, G H] each, which are one where the
  /// unit takes their sum, and dh0 [B, H]: the gradients of the inputs.
  template <class T>
  void finish(const Tensor& d_in, const Tensor& d_rec, const Tensor& dh0, Grads& dx) const {
    int64_t rows = real.total(), n = width(), I = size.I, H = size.H;
    const T *in = data<T>(d_in), *rec = data<T>(d_rec);
    if (dx.needed(0)) {
      Tensor of_x = real.empty(I, dtype());
      kernels::gemm(false, false, rows, I, n, T(1), in, n, data<T>(w_ih), I, T(0), data<T>(of_x), I);
      dx.add(0, real.unpack(of_x, input_shape));
    }
    if (dx.needed(1)) dx.add(1, real.unsort(dh0));
    if (dx.needed(2))
      kernels::gemm(true, false, n, I, rows, T(1), in, n, data<T>(x), I, T(1), data<T>(dx.into(2)), I);
    if (dx.needed(3)) {
      T* dw = data<T>(dx.into(3));
      int64_t whole = reset_seen.defined() ? n - H : n;  // rows of W_hh that met `seen`
      kernels::gemm(true, false, whole, H, rows, T(1), rec, n, data<T>(seen), H, T(1), dw, H);
      if (whole < n)
        kernels::gemm(true, false, H, H, rows, T(1), rec + whole, n, data<T>(reset_seen), H, T(1),
                      dw + whole * H, H);
    }
    if (b_ih.defined() && dx.needed(4)) kernels::sum_rows_into(in, data<T>(dx.into(4)), rows, n);
    if (b_hh.defined() && dx.needed(5)) kernels::sum_rows_into(rec, data<T>(dx.into(5)), rows, n);
  }
};

/// Checks, sorts and packs; h0 becomes zeros where undefined. x is to have `dims` axes: 3, or 2 for a cell,
/// which has T = 1. @throws Error naming the rule.
Recurrence make_recurrence(const char* op, int64_t gates, int dims, const Var& x, const Var& h0,
                           const RecurrentWeights& w, bool reverse, const Tensor& lengths,
                           const Tensor& state_mask);

}  // namespace gradus
