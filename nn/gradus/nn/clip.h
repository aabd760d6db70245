#pragma once

#include <gradus/autograd.h>

// Clipping gradients by other measures than the global norm (clip_grad_norm, in optimizer.h). It sums the
// rows with one id of an embedding's gradient first, as the dense gradient has them. NaN stays NaN.

namespace gradus::nn {

/// Every entry into [-max_value, max_value] (Joulin & Mikolov 2015 clip at 15). Returns the largest |entry|
/// before. @throws Error when max_value is not positive.
double clip_grad_value(Gradients& grads, double max_value);

}  // namespace gradus::nn
