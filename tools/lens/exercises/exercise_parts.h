#pragma once

// What exercises are composed of.

#include <gradus/ops.h>

#include <vector>

namespace lens {

using In = std::vector<gradus::Var>;

inline gradus::Var cut(const gradus::Var& x) { return gradus::stop_gradient(x); }

/// y's value with another function's gradients.
inline gradus::Var with_gradient_of(const gradus::Var& y, const gradus::Var& other) {
  return other - cut(other) + cut(y);
}

inline gradus::Var mean_loss(const In& in, gradus::CrossEntropyOptions options = {}) {
  return gradus::cross_entropy(in[0], in[1].value(), options).loss;
}

}  // namespace lens
