#pragma once

#include <cstdint>

namespace gradus::kernels {

struct CrossEntropySums {
  double loss = 0;  ///< sum over counted rows of the (smoothed) loss, nats
  double nll = 0;   ///< the same without smoothing
  int64_t count = 0;  ///< rows whose target is not `ignore_index`
};

/// Softmax, cross-entropy and its gradient in one pass over logits [rows, V] with targets [rows].
///   q = (1 - smoothing) onehot(target) + smoothing / V over ALL classes (PyTorch's convention)
///   loss_r = - sum_k q_k log p_k,  nll_r = - log p_target,   p = softmax(logits_r)
/// dlogits [rows, V] (null: not wanted; may be `logits`) = p - q, and 0 on rows with target = ignore_index:
/// the gradient of the SUM of the losses; the caller scales. Row losses go to row_nll [rows] where not null.
template <class T>
CrossEntropySums cross_entropy_rows(const T* logits, const int32_t* targets, int64_t rows, int64_t V,
                                    int32_t ignore_index, T smoothing, T* dlogits, T* row_nll);

/// The same for the output layer, in place and with its bias, whose passes over the logits it saves. Every row
/// counts.
///   logits += bias [V] (null: none)
///   with `gradient` they become p - q, and dbias [V] (null: not wanted) += its rows
template <class T>
CrossEntropySums cross_entropy_of_layer(T* logits, const T* bias, const int32_t* targets, int64_t rows,
                                        int64_t V, T smoothing, bool gradient, T* dbias);

}  // namespace gradus::kernels
