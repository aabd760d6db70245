#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// What is added to the variance where nothing else is asked for, as in PyTorch.
constexpr double kLayerNormEps = 1e-5;

/// Every row to mean 0 and variance 1, then a scale and an offset of its own for each column (Ba et al. 2016,
/// arXiv:1607.06450). x [..., n], gamma [n], beta [n] -> [..., n].
///   y = gamma xh + beta      xh = (x - mean) / sqrt(var + eps)      var divided by n
///   dgamma = sum over rows of dy xh      dbeta = sum over rows of dy
///   with g = dy gamma, means over the row: dx = (g - mean(g) - xh mean(g xh)) / sqrt(var + eps)
/// @throws Error "[layer_norm] gamma and beta must be [n] for input [..., n]: input [2, 5], ...".
Var layer_norm(const Input& x, const Var& gamma, const Var& beta, double eps = kLayerNormEps);

/// Gain and offset of a normalisation within another op, [n] each; an undefined offset is 0.
struct NormWeights {
  Var weight, bias;
};

}  // namespace gradus
