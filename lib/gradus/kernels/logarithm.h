#pragma once

#include <cstdint>

// Logarithms, powers and the losses made of them, over n contiguous numbers; y may be x. f32 is good to 5e-7 relative
// (powers too: they go through double), f64 to a few ulp; powers in f64 are the C library's.

namespace gradus::kernels {

/// -infinity at 0, NaN below.
void log(const float* x, float* y, int64_t n);
void log(const double* x, double* y, int64_t n);

/// y = x^e with std::pow's special cases; one exponent for all, or one each.
void pow(const float* x, float e, float* y, int64_t n);
void pow(const double* x, double e, double* y, int64_t n);
void pow(const float* x, const float* e, float* y, int64_t n);
void pow(const double* x, const double* e, double* y, int64_t n);

/// y[r, :] = x - log sum_k exp x_k over the n entries of x[r, :], of those with a mask (as softmax_rows') only; 0 at
/// masked ones. NaN, and a row of nothing but -infinity, give NaN. y may be x.
void log_softmax_rows(const float* x, const uint8_t* mask, float* y, int64_t rows, int64_t n);
void log_softmax_rows(const double* x, const uint8_t* mask, double* y, int64_t rows, int64_t n);
/// dx = dy - exp(y) sum_k dy_k over the real entries, 0 at masked ones whatever stands in dy there; dx may be dy.
void log_softmax_rows_backward(const float* y, const uint8_t* mask, const float* dy, float* dx, int64_t rows,
                               int64_t n);
void log_softmax_rows_backward(const double* y, const uint8_t* mask, const double* dy, double* dx,
                               int64_t rows, int64_t n);

/// What to compute of a loss of input x and target t, element by element.
enum class LossPart { term, dx, dt };

/// Binary cross-entropy of s = sigmoid(x), stable for large |x|:  term = -(pos_weight t log s + (1 - t) log(1 - s))
void bce_with_logits(LossPart part, float pos_weight, const float* x, const float* t, float* y, int64_t n);
void bce_with_logits(LossPart part, double pos_weight, const double* x, const double* t, double* y,
                     int64_t n);

/// Kullback-Leibler divergence from log-probabilities x:  term = t (log t - x), 0 at t <= 0, as are its derivatives
void kl_div(LossPart part, const float* x, const float* t, float* y, int64_t n);
void kl_div(LossPart part, const double* x, const double* t, double* y, int64_t n);
/// The same of log-targets:  term = exp(t) (t - x)
void kl_div_of_logs(LossPart part, const float* x, const float* t, float* y, int64_t n);
void kl_div_of_logs(LossPart part, const double* x, const double* t, double* y, int64_t n);

/// sum_i x_i, in double.
double sum(const float* x, int64_t n);
double sum(const double* x, int64_t n);

}  // namespace gradus::kernels
