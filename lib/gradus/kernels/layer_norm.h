#pragma once

#include <cstdint>

namespace gradus::kernels {

/// y[r, :] = gamma xh[r, :] + beta, xh = (x - mean) / sqrt(var + eps) over the n > 0 entries of a row, var
/// divided by n. `stats` [rows, 2] receives what the backward needs of each row: mean - x[r, 0], which loses
/// nothing where a row lies far from 0 and close together, and 1 / sqrt(var + eps).
void layer_norm(int64_t rows, int64_t n, const float* x, const float* gamma, const float* beta, float eps,
                float* y, float* stats);
void layer_norm(int64_t rows, int64_t n, const double* x, const double* gamma, const double* beta, double eps,
                double* y, double* stats);

/// With g = dy gamma and means over a row: writes dx = (g - mean(g) - xh mean(g xh)) / sqrt(var + eps) and
/// ADDS dgamma += sum over rows of dy xh, dbeta += sum over rows of dy. dx must be no other array of these.
void layer_norm_backward(int64_t rows, int64_t n, const float* x, const float* gamma, const float* stats,
                         const float* dy, float* dx, float* dgamma, float* dbeta);
void layer_norm_backward(int64_t rows, int64_t n, const double* x, const double* gamma, const double* stats,
                         const double* dy, double* dx, double* dgamma, double* dbeta);

}  // namespace gradus::kernels
