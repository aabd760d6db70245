#pragma once

#include <string>
#include <vector>

#include <gradus/autograd.h>
#include <gradus/op_case.h>
#include <gradus/random.h>

#include "../check.h"

namespace helpers {

using gradus::testing::error_of;
using gradus::testing::op_error_of;

inline gradus::Tensor random(const gradus::Shape& shape, gradus::DType dtype = gradus::DType::f64,
                             uint64_t seed = 1) {
  gradus::Rng rng(seed);
  return gradus::Tensor::uniform(shape, -1, 1, rng, dtype);
}

/// What the checks say about all cases of an op ("linear", "linear: no bias", ...), and how many there are.
inline std::vector<std::string> check_cases(const std::string& op, int& count) {
  std::vector<std::string> failures;
  count = 0;
  for (const gradus::OpCase& c : gradus::op_cases()) {
    if (c.name.substr(0, c.name.find(':')) != op) continue;
    ++count;
    for (const std::string& failure : gradus::check_op_case(c)) failures.push_back(failure);
  }
  return failures;
}

}  // namespace helpers

#define CHECK_OP_CASES(op, least)                                         \
  do {                                                                    \
    int count = 0;                                                        \
    CHECK(helpers::check_cases(op, count) == std::vector<std::string>{}); \
    CHECK(count >= least);                                                \
  } while (false)
