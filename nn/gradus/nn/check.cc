#include <gradus/nn/check.h>

#include <fmt/ranges.h>

#include <cmath>

#include <gradus/names.h>
#include <gradus/ops/operands.h>

namespace gradus::nn {

void unknown_name(const char* where, const char* what, std::string_view name,
                  const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  fail(where, fmt::format("unknown {} \"{}\": one of {}", what, name, fmt::join(known, ", ")),
       nearest.empty() ? "" : nearest + "?");
}

void must_be_positive(const char* where, const char* what, int64_t value, int64_t most) {
  if (value <= 0) refuse(where, "{} must be positive: {}", what, value);
  if (value > most) refuse(where, "{} must be at most {}: {}", what, most, value);
}

void must_be_positive(const char* where, const char* what, double value) {
  if (!(value > 0)) refuse(where, "{} must be positive: {}", what, value);
}

void must_not_be_negative(const char* where, const char* what, double value) {
  if (value < 0) refuse(where, "{} must not be negative: {}", what, value);
  if (!std::isfinite(value)) refuse(where, "{} must be finite: {}", what, value);
}

void must_be_probability(const char* where, const char* what, double p) {
  if (!(p >= 0 && p < 1)) refuse(where, "{} must be in [0, 1): {}", what, p);
}

void must_share_words(const char* where, int64_t source, int64_t target) {
  if (source != target)
    refuse(where, "tie_source needs one vocabulary for both sides: {} source words, {} target words", source,
           target);
}

int64_t saved_count(const char* where, const std::string& what, double value) {
  constexpr double kLargest = 9007199254740992.0;  // up to here every whole number is a double
  if (!(value >= 0 && value <= kLargest && value == std::floor(value)))
    refuse(where, "{} must be a whole number from 0 on: {}", what, value);
  return static_cast<int64_t>(value);
}

std::string all_wrong(const std::vector<std::pair<const char*, std::vector<std::string>>>& kinds) {
  std::vector<std::string> wrong;
  for (const auto& [what, names] : kinds)
    if (!names.empty()) wrong.push_back(fmt::format("{} {}", what, fmt::join(names, ", ")));
  return fmt::format("{}", fmt::join(wrong, "; "));
}

}  // namespace gradus::nn
