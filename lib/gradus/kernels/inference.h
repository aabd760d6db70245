#pragma once

#include <cstdint>

// What decoding needs that training does not: steps that keep nothing for a backward, rows that are not
// contiguous (blocks of one wide product), and looking for the best of many logits. Strides are those of rows.

namespace gradus::kernels {

/// Operands of gru_state; a stride stands behind each matrix.
struct GruStateInputs {
  /// W_ih x [R, 3H]
  const float* gi;
  int64_t gi_stride;
  /// added to gi: a second part of the input's product; null: none
  const float* gi_more;
  int64_t gi_more_stride;
  /// W_hh h [R, 3H]
  const float* gh;
  int64_t gh_stride;
  /// [3H]; null: none
  const float *b_ih, *b_hh;
  /// [R, H]
  const float* h_prev;
  int64_t h_prev_stride;
};

/// One step of a GRU, reset after, see gru.h: the new state h [R, H], which may be h_prev.
void gru_state(int64_t R, int64_t H, const GruStateInputs& in, float* h, int64_t h_stride);

/// y = tanh(a + b + c + bias), n numbers: the readout from its parts. c and bias may be null.
void tanh_of_sum(int64_t n, const float* a, const float* b, const float* c, const float* bias, float* y);

/// The first position of the largest of n >= 1 numbers; 0 when NaN is among them and none is found.
int64_t argmax(const float* x, int64_t n);
/// Running maximum over blocks of logits. x [rows, n] holds columns first .. first + n - 1, without their bias
/// [n] (null: none). If a row's maximum exceeds top[row], it becomes top[row], and its first column best[row].
void raise_best(int64_t rows, int64_t n, const float* x, int64_t stride, const float* bias, int64_t first,
                float* top, int32_t* best);
/// Which columns may hold the largest of n numbers known up to an error, x_i + bias_i +- (a e_i + b f_i) and
/// what rounding does; bias may be null. Raises `least` to the largest lower bound, makes upper bounds of x,
/// writes to `at` [n] where those are not below `least`, never where bias is -infinity, and returns how many.
int64_t contenders(int64_t n, float* x, const float* bias, const float* e, const float* f, float a, float b,
                   float* least, int32_t* at);
/// The first position i >= begin with x[i] > bound, n when there is none.
int64_t first_above(const float* x, int64_t begin, int64_t n, float bound);
/// log sum_i exp(x_i), the maximum taken out first.
double log_sum_exp(const float* x, int64_t n);

}  // namespace gradus::kernels
