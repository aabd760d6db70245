#pragma once

// Numbers that PyTorch made: tests/golden/training.json, by make_training.py beside it.

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gradus/tensor.h>

#include "../quick_doctest.h"
#include <common/json_text.h>

namespace gradus::testing {

inline const nlohmann::ordered_json& golden(const std::string& part) {
  static const nlohmann::ordered_json all = [] {
    std::ifstream file(GRADUS_GOLDEN_DIR "/training.json");
    REQUIRE(file);
    return json_text::parse(file);
  }();
  return all.at(part);
}

inline Tensor tensor(const nlohmann::ordered_json& j, DType dtype = DType::f64) {
  if (!j.is_object()) {
    auto values = j.get<std::vector<double>>();
    return Tensor::from({static_cast<int64_t>(values.size())}, values, dtype);
  }
  auto dims = j.at("shape").get<std::vector<int64_t>>();
  return Tensor::from(Shape(dims.data(), static_cast<int>(dims.size())),
                      j.at("data").get<std::vector<double>>(), dtype);
}

}  // namespace gradus::testing
