#pragma once

// Internal: the layer normalisations inside the fused recurrent ops. Not installed.

#include <gradus/kernels/layer_norm.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/recurrence.h>

namespace gradus {

/// The norms of a layer-normalised unit: each over so many times H entries, 0 where it has no such norm.
struct NormSizes {
  int64_t ih, hh, c;
};
/// The inputs of a unit's node: x, h0, weight_ih, weight_hh, bias_ih, bias_hh, any further states, and weight
/// and bias of each norm where the unit is normalised.
/// @throws Error "[layer_norm_gru] norm_hh must be [3 hidden_size] = [15]: weight [4], bias [5]", for a norm
/// that the unit does not have, and for a bias beside norms.
std::vector<Var> recurrent_inputs(const char* op, const Var& x, const std::vector<Var>& states,
                                  const RecurrentWeights& w, const NormSizes& sizes);

/// Where the gradients of gain and offset are added up while the steps are walked back: [n] each, those of
/// inputs i and i + 1 of the node; nobody's where nobody asks.
struct NormGradients {
  Tensor weight, bias;

  /// Undefined without the norms.
  NormGradients(bool normed, Grads& dx, int i, int64_t n, DType dtype) {
    if (!normed) return;
    weight = into_or_zeros(dx, i, {n}, dtype);
    bias = into_or_zeros(dx, i + 1, {n}, dtype);
  }
};

/// One layer normalisation, over n columns of the packed rows. Its gain and offset are entries begin .. begin +
/// n of the vectors in `NormWeights`. Without them it does nothing: the caller then writes the input where the
/// output is wanted, and the gradient stays where it is.
struct RowNorm {
  int64_t begin = 0, n = 0;
  /// [n] each
  Tensor gain, offset;
  /// [N, 2], what the backward needs of each row
  Tensor stats;

  RowNorm() = default;
  RowNorm(const NormWeights& norm, int64_t begin, int64_t n, const PackedSequence& real);
  explicit operator bool() const { return gain.defined(); }

  /// y = N(x), or y += N(x), for `rows` rows, the first of which is row `first` of the N.
  template <class T>
  void forward(int64_t first, int64_t rows, const T* x, int64_t ldx, bool add, T* y, int64_t ldy) const {
    if (!*this) return;
    kernels::layer_norm(rows, n, x, ldx, data<T>(gain), data<T>(offset), static_cast<T>(kLayerNormEps), add,
                        y, ldy, data<T>(stats) + 2 * first);
  }
  /// dx, or dx +=, from the same x. dx may be dy.
  template <class T>
  void backward(int64_t first, int64_t rows, const T* x, int64_t ldx, const T* dy, int64_t lddy, bool add,
                T* dx, int64_t lddx, const NormGradients& into) const {
    if (!*this) return;
    kernels::layer_norm_backward(rows, n, x, ldx, data<T>(gain), data<T>(stats) + 2 * first, dy, lddy, add,
                                 dx, lddx, data<T>(into.weight) + begin, data<T>(into.bias) + begin);
  }
};

namespace reference {
/// Columns of x [..., n], with entries begin .. begin + n of the norm's vectors; without a norm x itself.
Var normalise(const Var& x, const NormWeights& norm, int64_t begin = 0);
}  // namespace reference

}  // namespace gradus
