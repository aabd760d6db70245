#pragma once

#include <gradus/nn/module.h>

// Weights in 8 bits, as `translator quantize` writes them: each f32 matrix [n, k] of a module row by row, as
// kernels::Int8Matrix has them. Vectors (biases, LayerNorm's scales) stay as they are.

namespace translator {

/// Gives every f32 matrix the numbers that 8 bits can stand for. Doing it twice changes nothing.
/// @throws gradus::Error "[Int8Matrix] weights must be finite".
void round_to_int8(const gradus::nn::ParameterList& parameters);

/// The state of a module that was rounded, in a quarter of the bytes: of a matrix NAME the integers q + 128, u8
/// [n, k], and NAME.scale, f32 [n].
gradus::nn::StateDict int8_state_dict(const gradus::nn::ParameterList& parameters);
/// The same as numbers: (NAME - 128) NAME.scale. A state without such pairs is returned as it is.
/// @throws gradus::Error "[int8] encoder.weight.scale must be f32 [4] of finite numbers, none below 0".
gradus::nn::StateDict widened(const gradus::nn::StateDict& state);

}  // namespace translator
