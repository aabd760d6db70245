#pragma once

#include <cstdint>

// Logarithms, powers and the losses made of them, over n contiguous numbers; y may be x. f32 is good to 5e-7
// relative (powers too: they go through double), f64 to a few ulp; powers in f64 are the C library's.

namespace gradus::kernels {

/// -infinity at 0, NaN below.
template <class T>
void log(const T* x, T* y, int64_t n);

/// y = x^e with std::pow's special cases; one exponent for all, or one each.
void pow(const float* x, float e, float* y, int64_t n);
void pow(const double* x, double e, double* y, int64_t n);
void pow(const float* x, const float* e, float* y, int64_t n);
void pow(const double* x, const double* e, double* y, int64_t n);

/// What to compute of a loss of input x and target t, element by element.
enum class LossPart { term, dx, dt };

/// Binary cross-entropy of s = sigmoid(x), stable for large |x|:
///   term = -(pos_weight t log s + (1 - t) log(1 - s))
template <class T>
void bce_with_logits(LossPart part, T pos_weight, const T* x, const T* t, T* y, int64_t n);

/// Kullback-Leibler divergence from log-probabilities x:  term = t (log t - x); at t <= 0 all parts are 0
template <class T>
void kl_div(LossPart part, const T* x, const T* t, T* y, int64_t n);
/// The same of log-targets:  term = exp(t) (t - x)
template <class T>
void kl_div_of_logs(LossPart part, const T* x, const T* t, T* y, int64_t n);

/// sum_i x_i, in double.
template <class T>
double sum(const T* x, int64_t n);

}  // namespace gradus::kernels
