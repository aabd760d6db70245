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

/// y[r, :] = x - log sum_k exp x_k over the n entries of x[r, :], of those with a mask (as softmax_rows') only;
/// 0 at masked ones. NaN, and a row of nothing but -infinity, give NaN. y may be x.
template <class T>
void log_softmax_rows(const T* x, const uint8_t* mask, T* y, int64_t rows, int64_t n);
/// dx = dy - exp(y) sum_k dy_k over the real entries, 0 at masked ones whatever dy is there; dx may be dy.
template <class T>
void log_softmax_rows_backward(const T* y, const uint8_t* mask, const T* dy, T* dx, int64_t rows, int64_t n);

struct CrossEntropySums {
  /// sum over counted rows of the (smoothed) loss, nats
  double loss = 0;
  /// the same without smoothing
  double nll = 0;
};

/// Softmax, cross-entropy and its gradient in one pass over logits [rows, V] with targets [rows].
///   q = (1 - smoothing) onehot(target) + smoothing / V over ALL classes (PyTorch's convention)
///   loss_r = - sum_k q_k log p_k,  nll_r = - log p_target,   p = softmax(logits_r)
/// dlogits [rows, V] (null: not wanted; may be `logits`) = p - q, and 0 on rows with target = ignore_index:
/// the gradient of the SUM of the losses; the caller scales.
template <class T>
CrossEntropySums cross_entropy_rows(const T* logits, const int32_t* targets, int64_t rows, int64_t V,
                                    int32_t ignore_index, T smoothing, T* dlogits);

/// The same for the output layer, in place and with its bias, whose passes over the logits it saves. All count.
///   logits += bias [V] (null: none)
///   with `gradient` they become p - q, and dbias [V] (null: not wanted) += its rows
template <class T>
CrossEntropySums cross_entropy_of_layer(T* logits, const T* bias, const int32_t* targets, int64_t rows,
                                        int64_t V, T smoothing, bool gradient, T* dbias);

}  // namespace gradus::kernels
