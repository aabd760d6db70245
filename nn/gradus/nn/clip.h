#pragma once

#include <gradus/autograd.h>

// Clipping gradients by other measures than the global norm (clip_grad_norm, in optimizer.h). Each sums the
// rows with one id of an embedding's gradient first, as the dense gradient has them. NaN stays NaN.

namespace gradus::nn {

/// Every entry into [-max_value, max_value] (Joulin & Mikolov 2015 clip at 15). Returns the largest |entry|
/// before. @throws Error when max_value is not positive.
double clip_grad_value(Gradients& grads, double max_value, Caller caller = Caller::current());

/// Each parameter's gradient on its own scaled to a norm of max_norm at most (Sukhbaatar et al. 2015 use 40).
/// Changes the direction of the whole, unlike clip_grad_norm. Returns the largest of the norms before; a
/// gradient whose norm is not finite is left as it is. @throws Error when max_norm is not positive.
double clip_grad_norm_per_tensor(Gradients& grads, double max_norm, Caller caller = Caller::current());

}  // namespace gradus::nn
