#pragma once

#include <cstdint>

namespace gradus::kernels {

/// y[r, :] = gamma xh[r, :] + beta, or y += with `add`; xh = (x - mean) / sqrt(var + eps) over the n > 0
/// entries of a row, var divided by n. Rows of x and y are `ldx` and `ldy` apart. `stats` [rows, 2] receives
/// what the backward needs of each row: mean - x[r, 0], which loses nothing where a row lies far from 0 and
/// close together, and 1 / sqrt(var + eps). y may be x.
void layer_norm(int64_t rows, int64_t n, const float* x, int64_t ldx, const float* gamma, const float* beta,
                float eps, bool add, float* y, int64_t ldy, float* stats);
void layer_norm(int64_t rows, int64_t n, const double* x, int64_t ldx, const double* gamma,
                const double* beta, double eps, bool add, double* y, int64_t ldy, double* stats);

/// With g = dy gamma and means over a row: dx = (g - mean(g) - xh mean(g xh)) / sqrt(var + eps), or dx +=
/// with `add`, and ADDS dgamma += sum over rows of dy xh, dbeta += sum over rows of dy. Rows of x, dy, dx are
/// `ldx`, `lddy`, `lddx` apart. dx may be dy.
void layer_norm_backward(int64_t rows, int64_t n, const float* x, int64_t ldx, const float* gamma,
                         const float* stats, const float* dy, int64_t lddy, bool add, float* dx, int64_t lddx,
                         float* dgamma, float* dbeta);
void layer_norm_backward(int64_t rows, int64_t n, const double* x, int64_t ldx, const double* gamma,
                         const double* stats, const double* dy, int64_t lddy, bool add, double* dx,
                         int64_t lddx, double* dgamma, double* dbeta);

}  // namespace gradus::kernels
