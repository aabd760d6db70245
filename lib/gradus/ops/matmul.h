#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// Matrix product, a [..., m, k] b [..., k, n] -> [..., m, n]; leading axes, if any, broadcast.
///   y = a b      da = dy b^T      db = a^T dy, summed over stretched leading axes
/// A two-dimensional b is one product over all rows of a; otherwise there is one product per leading index.
/// @throws Error "[matmul] inner dimensions must agree: [2, 3] and [4, 5]",
/// "[matmul] leading dimensions do not broadcast: [2, 3, 4] and [5, 4, 3]",
/// "[matmul] needs at least two dimensions: [3] and [3, 4]".
Var matmul(const Input& a, const Var& b);

/// y = x W^T + b, as PyTorch's linear. x [..., in], weight [out, in], bias [out] or undefined -> [..., out]
///   dx = dy W      dW = dy^T x      db = sum of dy over all rows
/// @throws Error "[linear] input's last dimension must be in_features: input [64, 256], weight [512, 512]"
Var linear(const Input& x, const Var& weight, const Var& bias = {});

/// How exact products of f32 are from now on, in all threads and ops, as PyTorch's function of this name:
/// `medium` rounds the factors of those from 2^20 multiplications on to bfloat16, 8 bits of 24, and sums in
/// f32, but on AMX, where that would not be faster.
/// @throws Error "[set_float32_matmul_precision] medium needs a CPU with AVX512_BF16".
enum class MatmulPrecision { highest, medium };
void set_float32_matmul_precision(MatmulPrecision precision, Caller caller = Caller::current());

}  // namespace gradus
