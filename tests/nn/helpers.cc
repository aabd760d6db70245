#include "helpers.h"

#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include <common/json_text.h>

namespace gradus::test {

Tensor golden(const std::string& file, const std::string& group, const std::string& name) {
  std::ifstream stream(std::string(GRADUS_GOLDEN_DIR "/") + file + ".json");
  REQUIRE(stream);
  nlohmann::ordered_json j = json_text::parse(stream)[group][name];
  auto dims = j["shape"].get<std::vector<int64_t>>();
  return Tensor::from(Shape(dims.data(), static_cast<int>(dims.size())), j["data"].get<std::vector<double>>(),
                      DType::f64);
}

std::vector<std::string> golden_names(const std::string& file, const std::string& group) {
  std::ifstream stream(std::string(GRADUS_GOLDEN_DIR "/") + file + ".json");
  REQUIRE(stream);
  std::vector<std::string> names;
  nlohmann::ordered_json j = json_text::parse(stream);
  for (const auto& [name, value] : j.at(group).items()) names.push_back(name);
  return names;
}

std::vector<std::string> names(const nn::StateDict& dict) {
  std::vector<std::string> out;
  for (const auto& entry : dict) out.push_back(entry.first);
  return out;
}

}  // namespace gradus::test
