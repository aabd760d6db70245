#pragma once

#include <string>

#include <gradus/tensor.h>

namespace gradus {

struct PrintOptions {
  /// Digits after the point.
  int precision = 4;
};

/// The numbers in aligned columns, nested brackets for axes, followed by shape and element type:
/// [[ 1.0000, -2.5000],
///  [ 0.0000,     nan]]  f32 [2, 2]
/// Of more than 200, long axes have four entries at each end and "..." between.
std::string to_string(const Tensor& t, const PrintOptions& options = {});

/// One line for reports: "f32 [64, 256], -0.31 .. 2.7" and how many entries are NaN or infinite, if any.
std::string describe(const Tensor& t);

}  // namespace gradus
