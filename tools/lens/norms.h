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

}  // namespace lens
