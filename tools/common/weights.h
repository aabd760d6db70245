#pragma once

#include <cstdint>
#include <span>

namespace translator {

/// A view of attention weights, row-major: one row a target word, one column a source word.
struct Weights {
  int64_t rows = 0;
  int64_t columns = 0;
  std::span<const float> values;  ///< rows x columns of them

  float at(int64_t row, int64_t column) const { return values[static_cast<size_t>(row * columns + column)]; }
};

}  // namespace translator
