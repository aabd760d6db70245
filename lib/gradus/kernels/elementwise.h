#pragma once

#include <cstdint>

// Element by element over n contiguous numbers; y may be x. f32 uses the fast SIMD functions (relative error
// below 5e-7), f64 is good to a few ulp.

namespace gradus::kernels {

template <class T>
void exp(const T* x, T* y, int64_t n);
template <class T>
void tanh(const T* x, T* y, int64_t n);
/// 1 / (1 + exp(-x)), without overflow for large |x|.
template <class T>
void sigmoid(const T* x, T* y, int64_t n);
/// max(x, 0), and NaN of NaN.
template <class T>
void relu(const T* x, T* y, int64_t n);

/// keep[i] = 1 where words[i] >= threshold, otherwise 0: a mask of dropout.
void keep_words(const uint32_t* words, uint32_t threshold, uint8_t* keep, int64_t n);
/// y = scale x where keep is 1, and 0 where it is 0, of infinities and NaN, too; y may be x.
template <class T>
void keep_scaled(const T* x, const uint8_t* keep, T scale, T* y, int64_t n);

/// y += x: how gradients accumulate.
template <class T>
void add_into(const T* x, T* y, int64_t n);
/// y += a x.
template <class T>
void axpy(T a, const T* x, T* y, int64_t n);
/// dx = dy (1 - y^2), the backward of y = tanh(x); dx may be dy.
template <class T>
void tanh_backward(const T* y, const T* dy, T* dx, int64_t n);
/// dx = dy y (1 - y), the backward of y = sigmoid(x); dx may be dy.
template <class T>
void sigmoid_backward(const T* y, const T* dy, T* dx, int64_t n);
/// sum_i x_i y_i.
template <class T>
T dot(const T* x, const T* y, int64_t n);
/// y[r, :] += bias for r < rows: adds a bias to every row of a [rows, n] matrix.
template <class T>
void add_bias(const T* bias, T* y, int64_t rows, int64_t n);
/// out[:] += sum over r < rows of x[r, :], a bias gradient.
template <class T>
void sum_rows_into(const T* x, T* out, int64_t rows, int64_t n);

}  // namespace gradus::kernels
