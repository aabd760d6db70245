#pragma once

#include <string>

#include <gradus/io/safetensors.h>

#include "check.h"

/// Two files hold the same tensors in the same order, to the last bit.
inline void check_same_tensors(const std::string& a, const std::string& b) {
  const auto x = gradus::load_safetensors(a).tensors, y = gradus::load_safetensors(b).tensors;
  REQUIRE(x.size() == y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i].first);
    CHECK(x[i].first == y[i].first);
    CHECK(gradus::testing::same_bits(x[i].second, y[i].second));
  }
}
