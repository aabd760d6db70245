#pragma once

#include <cstdint>

namespace gradus {

/// Element types, chosen at run time: f32 to train, f64 to check gradients, i32 for ids and lengths, u8 for
/// masks.
enum class DType : uint8_t { f32, f64, i32, u8 };

/// Bytes per element.
constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return 4;
    case DType::f64: return 8;
    case DType::i32: return 4;
    case DType::u8: return 1;
  }
  return 0;
}

constexpr const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
  }
  return "?";
}

/// True for the types that gradients exist for.
constexpr bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

}  // namespace gradus
