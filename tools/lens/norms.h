#pragma once

#include <cmath>
#include <vector>

#include <gradus/numeric.h>
#include <gradus/tensor.h>

namespace lens {

/// Adds x to a sum; what is undefined is 0.
inline void add_to(gradus::Tensor& sum, const gradus::Tensor& x) {
  if (x.defined()) sum = sum.defined() ? gradus::zip(sum, x, [](auto a, auto b) { return a + b; }) : x;
}
inline gradus::Tensor sum_of(const std::vector<gradus::Tensor>& all) {
  gradus::Tensor out;
  for (const gradus::Tensor& x : all) add_to(out, x);
  return out;
}

/// The length of all numbers of a tensor; 0 where it is undefined.
inline double norm(const gradus::Tensor& x) {
  double sum = 0;
  if (x.defined())
    for (double v : x.to_vector()) sum += v * v;
  return std::sqrt(sum);
}

/// The largest of a tensor's numbers by size; NaN where one is.
inline double largest(const gradus::Tensor& x) {
  double most = 0;
  for (double v : x.to_vector()) most = gradus::worse(most, std::abs(v));
  return most;
}

/// The lengths of a matrix's rows.
inline std::vector<double> row_norms(const gradus::Tensor& x) {
  std::vector<double> out;
  for (int64_t r = 0; r < x.size(0); ++r) out.push_back(norm(x.row(r)));
  return out;
}

/// Rows of pieces [pieces, D] added up to those of words [words, D]; word_of as in translator::Segmented.
inline gradus::Tensor rows_of_words(const gradus::Tensor& x, const std::vector<int32_t>& word_of) {
  const int64_t D = x.size(1);
  gradus::Tensor out = gradus::Tensor::zeros({word_of.back() + 1, D}, gradus::DType::f64);
  for (int64_t i = 0; i < x.numel(); ++i)
    out.f64()[word_of[static_cast<size_t>(i / D)] * D + i % D] += x.f64()[i];
  return out;
}

}  // namespace lens
