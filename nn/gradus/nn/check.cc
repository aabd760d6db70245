#include <gradus/nn/check.h>

#include <fmt/core.h>

#include <gradus/error.h>

namespace gradus::nn {

void must_be_positive(const char* where, const char* what, int64_t value) {
  if (value <= 0) fail(where, fmt::format("{} must be positive: {}", what, value));
}

void must_be_positive(const char* where, const char* what, double value) {
  if (!(value > 0)) fail(where, fmt::format("{} must be positive: {}", what, value));
}

void must_be_probability(const char* where, const char* what, double p) {
  if (!(p >= 0 && p < 1)) fail(where, fmt::format("{} must be in [0, 1): {}", what, p));
}

void must_be_lengths(const char* where, const Tensor& lengths, int64_t B, int64_t T) {
  if (!lengths.defined()) return;
  if (lengths.dtype() != DType::i32 || lengths.shape() != Shape{B})
    fail(where, fmt::format("lengths must be i32 [{}], one per sequence: {} {}", B, name_of(lengths.dtype()),
                            lengths.shape().str()));
  for (int64_t b = 0; b < B; ++b) {
    int32_t length = lengths.i32()[b];
    if (length < 0 || length > T) fail(where, fmt::format("lengths must be in 0 .. {}: {}", T, length));
  }
}

}  // namespace gradus::nn
