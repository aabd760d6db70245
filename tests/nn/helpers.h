#pragma once

#include <string>

#include <gradus/gradcheck.h>
#include <gradus/nn/module.h>
#include <gradus/random.h>
#include <gradus/tensor.h>

#include "../check.h"
#include "../quick_doctest.h"

namespace gradus::test {

inline Tensor random(const Shape& shape, uint64_t seed, DType dtype = DType::f64) {
  Rng rng(seed);
  return Tensor::uniform(shape, -1, 1, rng, dtype);
}

using testing::error_of;

using testing::same_bits;

/// A tensor of a golden file: golden("adam_step", "inputs", "p").
Tensor golden(const std::string& file, const std::string& group, const std::string& name);
/// The names in one of its groups.
std::vector<std::string> golden_names(const std::string& file, const std::string& group);

std::vector<std::string> names(const nn::StateDict& dict);

}  // namespace gradus::test

#define CHECK_GRADIENTS(...)             \
  do {                                   \
    GradcheckReport report = __VA_ARGS__; \
    INFO(report.message);                \
    CHECK(report.ok);                    \
    CHECK(report.checked > 0);           \
  } while (false)
