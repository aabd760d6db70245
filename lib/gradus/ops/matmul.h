#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// a [..., m, k] b [..., k, n] -> [..., m, n]; leading axes broadcast. Two-dimensional at least.
/// @throws Error "[matmul] inner dimensions must agree: [2, 3] and [4, 5]"
Var matmul(const Var& a, const Var& b);

/// y = x W^T + b. x [..., in], weight [out, in], bias [out] or undefined -> [..., out] (torch.nn.functional.linear).
/// @throws Error "[linear] input's last dimension must be in_features: input [64, 256], weight [512, 512]"
Var linear(const Var& x, const Var& weight, const Var& bias = {});

}  // namespace gradus
