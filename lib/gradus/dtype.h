#pragma once

#include <cstdint>

namespace gradus {

/// Element types, chosen at run time: f32 to train, f64 to check it, i32 for ids and lengths, u8 for masks.
enum class DType : uint8_t { f32, f64, i32, u8 };

/// Bytes per element.
constexpr int64_t size_of(DType dtype) {
  constexpr int64_t sizes[] = {4, 8, 4, 1};
  return sizes[static_cast<int>(dtype)];
}

constexpr const char* name_of(DType dtype) {
  constexpr const char* names[] = {"f32", "f64", "i32", "u8"};
  return names[static_cast<int>(dtype)];
}

/// True for the types that gradients exist for.
constexpr bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

}  // namespace gradus
