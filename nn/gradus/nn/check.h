#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gradus/tensor.h>

// Checks of constructor arguments and inputs that several modules need.

namespace gradus::nn {

/// @throws Error "[Linear] in_features must be positive: 0", or "... at most 2147483647: 4611686018427387904":
/// no layer is that large, and a few of them multiplied by its gates still fit an int64_t.
void must_be_positive(const char* where, const char* what, int64_t value,
                      int64_t most = std::numeric_limits<int32_t>::max());
/// Layers upon each other, of a stack that anybody would wait for: a file may say any number.
constexpr int64_t kMostLayers = 1000;
/// @throws Error "[step_lr] step_size must be positive: 0", for NaN too.
void must_be_positive(const char* where, const char* what, double value);
/// @throws Error "[Adam] lr must not be negative: -0.1", or that it must be finite.
void must_not_be_negative(const char* where, const char* what, double value);
/// @throws Error "[Dropout] p must be in [0, 1): 1.5"
void must_be_probability(const char* where, const char* what, double p);
/// Where one table of word vectors is for both sides. @throws Error unless the vocabularies have one size.
void must_share_words(const char* where, int64_t source_vocabulary, int64_t target_vocabulary);
/// A saved state's count. @throws Error "[Adam] step.weight must be a whole number from 0 on: nan"
int64_t saved_count(const char* where, const std::string& what, double value);
/// "missing a, b; unexpected c": what is wrong with a saved state, each kind with its names; "" for nothing.
std::string all_wrong(const std::vector<std::pair<const char*, std::vector<std::string>>>& kinds);
/// Throws Error "[cell_type] unknown cell \"gur\": one of gru, lstm (file.cc:line); hint: gru?". The hint is
/// the nearest of `known`, if one is near.
[[noreturn]] void unknown_name(const char* where, const char* what, std::string_view name,
                               const std::vector<std::string>& known);

}  // namespace gradus::nn
