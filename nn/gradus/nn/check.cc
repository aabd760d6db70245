#include <gradus/nn/check.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <gradus/error.h>

namespace gradus::nn {
namespace {

// Letters to insert, delete, replace or exchange with a neighbour (Damerau 1964, each place edited once).
size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

void unknown_name(const char* where, const char* what, std::string_view name,
                  const std::vector<std::string>& known) {
  // Near: a third of the letters at most are wrong.
  std::string hint;
  size_t fewest = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& n : known)
    if (size_t e = edits(name, n); e < fewest) fewest = e, hint = n + "?";
  fail(where, fmt::format("unknown {} \"{}\": one of {}", what, name, fmt::join(known, ", ")), hint);
}

void must_be_positive(const char* where, const char* what, int64_t value, int64_t most) {
  if (value <= 0) fail(where, fmt::format("{} must be positive: {}", what, value));
  if (value > most) fail(where, fmt::format("{} must be at most {}: {}", what, most, value));
}

void must_be_positive(const char* where, const char* what, double value) {
  if (!(value > 0)) fail(where, fmt::format("{} must be positive: {}", what, value));
}

void must_not_be_negative(const char* where, const char* what, double value) {
  if (value < 0) fail(where, fmt::format("{} must not be negative: {}", what, value));
  if (!std::isfinite(value)) fail(where, fmt::format("{} must be finite: {}", what, value));
}

void must_be_probability(const char* where, const char* what, double p) {
  if (!(p >= 0 && p < 1)) fail(where, fmt::format("{} must be in [0, 1): {}", what, p));
}

int64_t saved_count(const char* where, const std::string& what, double value) {
  constexpr double kLargest = 9007199254740992.0;  // up to here every whole number is a double
  if (!(value >= 0 && value <= kLargest && value == std::floor(value)))
    fail(where, fmt::format("{} must be a whole number from 0 on: {}", what, value));
  return static_cast<int64_t>(value);
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
