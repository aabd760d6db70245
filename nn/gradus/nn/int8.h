#pragma once

#include <gradus/nn/module.h>

// Weights in 8 bits: each matrix [n, k] of a module row by row, as kernels::Int8Matrix has them. Vectors (biases,
// LayerNorm's scales) stay as they are.

namespace gradus::nn {

/// Gives every f32 matrix the numbers that 8 bits can stand for. Doing it twice changes nothing.
/// @throws Error "[Int8Matrix] weights must be finite".
void round_to_int8(const ParameterList& parameters);

/// The state of a module that was rounded, in a quarter of the bytes: of a matrix NAME the integers q + 128, u8
/// [n, k], and NAME.scale, f32 [n].
StateDict int8_state_dict(const ParameterList& parameters);
/// The same as numbers: (NAME - 128) NAME.scale. A state without such pairs is returned as it is.
/// @throws Error "[int8] encoder.weight.scale must be f32 [4] of finite numbers, none below 0".
StateDict widened(const StateDict& state);

}  // namespace gradus::nn
