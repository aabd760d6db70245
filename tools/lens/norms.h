#pragma once

#include <cmath>
#include <vector>

#include <gradus/tensor.h>

namespace lens {

/// The length of all numbers of a tensor; 0 where it is undefined.
inline double norm(const gradus::Tensor& x) {
  double sum = 0;
  if (x.defined())
    for (double v : x.to_vector()) sum += v * v;
  return std::sqrt(sum);
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
