#pragma once

#include <cstdint>

// Element by element over n contiguous numbers; y may be x. f32 uses the fast SIMD functions (relative error
// below 5e-7), f64 is good to a few ulp.

namespace gradus::kernels {

void exp(const float* x, float* y, int64_t n);
void exp(const double* x, double* y, int64_t n);
void tanh(const float* x, float* y, int64_t n);
void tanh(const double* x, double* y, int64_t n);
/// 1 / (1 + exp(-x)), without overflow for large |x|.
void sigmoid(const float* x, float* y, int64_t n);
void sigmoid(const double* x, double* y, int64_t n);

/// y += x: how gradients accumulate.
void add_into(const float* x, float* y, int64_t n);
void add_into(const double* x, double* y, int64_t n);
/// y += a x.
void axpy(float a, const float* x, float* y, int64_t n);
void axpy(double a, const double* x, double* y, int64_t n);
/// dx = dy (1 - y^2), the backward of y = tanh(x); dx may be dy.
void tanh_backward(const float* y, const float* dy, float* dx, int64_t n);
void tanh_backward(const double* y, const double* dy, double* dx, int64_t n);
/// dx = dy y (1 - y), the backward of y = sigmoid(x); dx may be dy.
void sigmoid_backward(const float* y, const float* dy, float* dx, int64_t n);
void sigmoid_backward(const double* y, const double* dy, double* dx, int64_t n);
/// sum_i x_i y_i.
float dot(const float* x, const float* y, int64_t n);
double dot(const double* x, const double* y, int64_t n);
/// y[r, :] += bias for r < rows: adds a bias to every row of a [rows, n] matrix.
void add_bias(const float* bias, float* y, int64_t rows, int64_t n);
void add_bias(const double* bias, double* y, int64_t rows, int64_t n);
/// out[:] += sum over r < rows of x[r, :], a bias gradient.
void sum_rows_into(const float* x, float* out, int64_t rows, int64_t n);
void sum_rows_into(const double* x, double* out, int64_t rows, int64_t n);

}  // namespace gradus::kernels
