#include <translator/model/int8_state.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <gradus/error.h>
#include <gradus/kernels/products/int8.h>

namespace translator {

namespace nn = gradus::nn;
using gradus::DType, gradus::Shape, gradus::Tensor;

namespace {

constexpr const char* kScale = ".scale";

bool is_rounded(const Tensor& t) { return t.dims() == 2 && t.dtype() == DType::f32; }

}  // namespace

void round_to_int8(const nn::ParameterList& parameters) {
  for (const gradus::NamedParameter& p : parameters) {
    if (!is_rounded(p.parameter->value())) continue;
    p.parameter->update([](const Tensor& value) {
      const int64_t k = value.size(1);
      for (int64_t row = 0; row < value.size(0); ++row)
        gradus::kernels::round_to_int8(k, value.f32() + row * k);
    });
  }
}

nn::StateDict int8_state_dict(const nn::ParameterList& parameters) {
  nn::StateDict out;
  for (const auto& [name, value] : nn::state_dict(parameters)) {
    if (!is_rounded(value)) {
      out.emplace_back(name, value);
      continue;
    }
    const int64_t n = value.size(0), k = value.size(1);
    Tensor integers(value.shape(), DType::u8), scales({n}, DType::f32), rows = value.clone();
    std::vector<int8_t> q(static_cast<size_t>(k));
    for (int64_t row = 0; row < n; ++row) {
      scales.f32()[row] = gradus::kernels::round_to_int8(k, rows.f32() + row * k, q.data());
      std::transform(q.begin(), q.end(), integers.u8() + row * k,
                     [](int8_t v) { return static_cast<uint8_t>(v + 128); });
    }
    out.emplace_back(name, integers);
    out.emplace_back(name + kScale, scales);
  }
  return out;
}

nn::StateDict widened(const nn::StateDict& state) {
  std::map<std::string, Tensor> scales;
  for (const auto& [name, tensor] : state)
    if (name.ends_with(kScale)) scales.emplace(name, tensor);
  nn::StateDict out;
  for (const auto& [name, tensor] : state) {
    const auto scale = scales.find(name + kScale);
    if (scale == scales.end() || tensor.dtype() != DType::u8 || tensor.dims() != 2) {
      const bool of_matrix = name.ends_with(kScale) && tensor.dims() == 1 &&
                             std::any_of(state.begin(), state.end(), [&own = name](const auto& other) {
                               return other.first + kScale == own && other.second.dtype() == DType::u8;
                             });
      if (!of_matrix) out.emplace_back(name, tensor);
      continue;
    }
    const int64_t n = tensor.size(0), k = tensor.size(1);
    const Tensor& s = scale->second;
    if (s.dtype() != DType::f32 || s.shape() != Shape{n} ||
        !std::all_of(s.f32(), s.f32() + n, [](float v) { return std::isfinite(v) && v >= 0; }))
      gradus::fail("int8", name + kScale + " must be f32 [" + std::to_string(n) +
                               "] of finite numbers, none below 0");
    Tensor numbers(tensor.shape(), DType::f32);
    for (int64_t i = 0; i < n * k; ++i)
      numbers.f32()[i] = static_cast<float>(tensor.u8()[i] - 128) * s.f32()[i / k];
    out.emplace_back(name, numbers);
  }
  return out;
}

}  // namespace translator
