#pragma once

#include <cstdint>

namespace gradus::kernels {

/// y[r, :] = gamma xh[r, :] + beta, or y += with `add`; xh = (x - mean) / sqrt(var + eps) over the n > 0
/// entries of a row, var divided by n. Rows of x and y are `ldx` and `ldy` apart. `stats` [rows, 2] receives
/// what the backward needs of each row: mean - x[r, 0], which loses nothing where a row lies far from 0 and
/// close together, and 1 / sqrt(var + eps). y may be x.
template <class T>
void layer_norm(int64_t rows, int64_t n, const T* x, int64_t ldx, const T* gamma, const T* beta, T eps,
                bool add, T* y, int64_t ldy, T* stats);

/// With g = dy gamma and means over a row: dx = (g - mean(g) - xh mean(g xh)) / sqrt(var + eps), or dx +=
/// with `add`, and ADDS dgamma += sum over rows of dy xh, dbeta += sum over rows of dy. Rows of x, dy, dx are
/// `ldx`, `lddy`, `lddx` apart. dx may be dy.
template <class T>
void layer_norm_backward(int64_t rows, int64_t n, const T* x, int64_t ldx, const T* gamma, const T* stats,
                         const T* dy, int64_t lddy, bool add, T* dx, int64_t lddx, T* dgamma, T* dbeta);

}  // namespace gradus::kernels
