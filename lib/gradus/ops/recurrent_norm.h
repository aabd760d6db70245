#pragma once

// Internal: the layer normalisations inside the fused recurrent ops. Not installed.

#include <gradus/kernels/layer_norm.h>
#include <gradus/ops/layer_norm.h>
#include <gradus/ops/recurrence.h>

namespace gradus {

/// weight [n] and, unless undefined, bias [n] of `norm`, in the element type of the op's input.
/// @throws Error "[layer_norm_rnn] norm must be [hidden_size] = [5]: weight [4], bias [5]"
void check_norm(const char* op, const char* name, const NormWeights& norm, int64_t n, const char* n_text,
                DType dtype);

/// Where the gradients of gain and offset are added up while the steps are walked back.
struct NormGradients {
  Tensor weight, bias;  // [n], those of inputs i and i + 1 of the node; nobody's where nobody asks

  NormGradients(Grads& dx, int i, int64_t n, DType dtype)
      : weight(dx.needed(i) ? dx.into(i) : Tensor::zeros({n}, dtype)),
        bias(dx.needed(i + 1) ? dx.into(i + 1) : Tensor::zeros({n}, dtype)) {}
};

/// One normalisation, over n columns of the real rows. Its gain and offset are entries begin .. begin + n of
/// the vectors in `NormWeights`.
struct RowNorm {
  int64_t begin, n;
  Tensor gain, offset;  // [n]
  Tensor stats;         // [N, 2], what the backward needs of each row

  RowNorm() = default;
  RowNorm(const NormWeights& norm, int64_t begin, int64_t n, const RealSteps& real);

  /// y = N(x), or y += N(x), for `rows` rows, the first of which is row `first` of the N.
  template <class T>
  void forward(int64_t first, int64_t rows, const T* x, int64_t ldx, bool add, T* y, int64_t ldy) const {
    kernels::layer_norm(rows, n, x, ldx, data<T>(gain), data<T>(offset), static_cast<T>(kLayerNormEps), add,
                        y, ldy, data<T>(stats) + 2 * first);
  }
  /// dx, or dx +=, from the same x. dx may be dy.
  template <class T>
  void backward(int64_t first, int64_t rows, const T* x, int64_t ldx, const T* dy, int64_t lddy, bool add,
                T* dx, int64_t lddx, const NormGradients& into) const {
    kernels::layer_norm_backward(rows, n, x, ldx, data<T>(gain), data<T>(stats) + 2 * first, dy, lddy, add,
                                 dx, lddx, data<T>(into.weight) + begin, data<T>(into.bias) + begin);
  }
};

namespace reference {
/// Columns of x [..., n], with entries begin .. begin + n of the norm's vectors.
Var normalise(const Var& x, const NormWeights& norm, int64_t begin = 0);
}  // namespace reference

}  // namespace gradus
