#include "golden.h"

#include <fmt/core.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/reduce.h>

#include <common/json_text.h>

namespace golden {
namespace {

using gradus::DType;
using gradus::Shape;
using gradus::Tensor;
using gradus::Var;
using Json = nlohmann::ordered_json;

Tensor tensor_of(const Json& j) {
  std::vector<int64_t> dims = j.at("shape").get<std::vector<int64_t>>();
  return Tensor::from(Shape(dims.data(), static_cast<int>(dims.size())),
                      j.at("data").get<std::vector<double>>(), DType::f64);
}

std::map<std::string, Tensor> tensors_of(const Json& file, const char* key) {
  std::map<std::string, Tensor> out;
  for (const auto& [name, value] : file.at(key).items()) {
    if (value.is_object()) out[name] = tensor_of(value);
    else if (value.is_number()) out[name] = Tensor::scalar(value.get<double>(), DType::f64);
    else if (value.is_array())
      out[name] =
          Tensor::from({static_cast<int64_t>(value.size())}, value.get<std::vector<double>>(), DType::f64);
  }
  return out;
}

std::vector<std::string> differences_in(DType dtype, const File& file, const Function& f) {
  double tolerance = dtype == DType::f64 ? 1e-11 : 2e-6;
  std::vector<std::string> found;
  auto check = [&](const std::string& what, const Tensor& got, const Tensor& wanted) {
    std::string text = compare(got, wanted, tolerance);
    if (!text.empty()) found.push_back(fmt::format("{} {}: {}", name_of(dtype), what, text));
  };
  Values in;
  for (const auto& [key, value] : file.inputs) in[key] = gradus::variable(value.to(dtype), key);
  Values out = f(in, file);
  for (const auto& [key, value] : out) check(key, value.value(), file.outputs.at(key));
  Var loss;
  for (const auto& [key, up] : file.upstream) {
    Var part = gradus::sum(out.at(key) * Var(up.to(dtype)));
    loss = loss.defined() ? loss + part : part;
  }
  check("loss", loss.value(), Tensor::scalar(file.loss_value, DType::f64));
  gradus::Gradients grads = gradus::backward(loss);
  for (const auto& [key, wanted] : file.grads)
    check("gradient of " + key,
          grads.contains(in.at(key)) ? grads[in.at(key)] : Tensor::zeros(wanted.shape()), wanted);
  return found;
}

}  // namespace

File load(const std::string& name) {
  std::ifstream stream(std::string(GRADUS_GOLDEN_DIR) + "/" + name + ".json");
  if (!stream) throw std::runtime_error("no golden file " + name);
  Json json = json_text::parse(stream);
  return {tensors_of(json, "inputs"), tensors_of(json, "outputs"), tensors_of(json, "upstream"),
          tensors_of(json, "grads"),  tensors_of(json, "config"),  json.at("loss_value").get<double>()};
}

std::vector<std::string> differences(const std::string& name, const Function& f, const Options& options) {
  File file = load(name);
  std::vector<std::string> found;
  if (options.in_double) found = differences_in(DType::f64, file, f);
  if (options.in_float)
    for (const std::string& line : differences_in(DType::f32, file, f)) found.push_back(line);
  return found;
}

Tensor mask_of(const Values& in, const File& file) {
  return gradus::length_mask(ids(file, "lengths"), in.at("annotations").size(1));
}

Tensor ids(const File& file, const std::string& key) { return file.config.at(key).to(DType::i32); }

std::string compare(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.shape() != b.shape()) return fmt::format("shape {}, expected {}", a.shape().str(), b.shape().str());
  double worst = 0;
  std::string text;
  for (int64_t i = 0; i < a.numel(); ++i) {
    double error = std::abs(a.at(i) - b.at(i)) / (1 + std::abs(b.at(i)));
    if (error <= tolerance || error <= worst) continue;
    worst = error;
    text = fmt::format("[{}] is {:.15g}, expected {:.15g}", i, a.at(i), b.at(i));
    if (std::isnan(error)) return text;
  }
  return text;
}

}  // namespace golden
