#pragma once

#include <cstdint>
#include <span>

namespace translator {

/// A view of attention weights, row-major: one row a target word, one column a source word.
struct Weights {
  int64_t rows = 0;
  int64_t columns = 0;
  /// rows x columns of them
  std::span<const float> values;

  float at(int64_t row, int64_t column) const { return values[static_cast<size_t>(row * columns + column)]; }

  /// The column of a row's largest weight, the first of equals; -1 where none is above 0.
  int64_t largest_of(int64_t row) const {
    int64_t best = -1;
    for (int64_t column = 0; column < columns; ++column) {
      if (at(row, column) > (best < 0 ? 0 : at(row, best))) best = column;
    }
    return best;
  }
};

}  // namespace translator
