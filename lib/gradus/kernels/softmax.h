#pragma once

#include <cstdint>

namespace gradus::kernels {

/// y[r, :] = softmax over the n entries of x[r, :], the row maximum subtracted first. `mask` [rows, n]
/// (1 = real, 0 = left out) may be null; masked entries are exactly 0, and so is a row with no real entry, or
/// with none but -infinity. y may be x.
template <class T>
void softmax_rows(const T* x, const uint8_t* mask, T* y, int64_t rows, int64_t n);

/// dx[r, s] = y_s (dy_s - sum_k y_k dy_k), the softmax Jacobian diag(y) - y y^T applied to dy; dx may be dy.
/// A masked entry has y = 0, hence dx = 0, whatever finite or non-finite number stands in dy there.
template <class T>
void softmax_rows_backward(const T* y, const T* dy, T* dx, int64_t rows, int64_t n);

}  // namespace gradus::kernels
