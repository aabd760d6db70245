#pragma once

#include <gradus/nn/attention/attention.h>

namespace gradus::nn {

/// e_s [S] at position s of each of B sentences, [S, B, S]: the rows of the identity. As annotations, or beside
/// them, they make contexts of the weights themselves, sum_s alpha_s e_s = alpha, through which a loss reaches
/// these.
Tensor unit_annotations(int64_t S, int64_t B, DType dtype = DType::f32);

/// Guided alignment (Chen et al. 2016, 1607.01628; Mi et al. 2016, 1608.00112): what attention weights cost
/// that do not look where gold links point, as a scalar for the loss,
///   L = -1/N sum_i sum_s A_is log alpha_is,   dL/dalpha_is = -A_is / (N alpha_is)
/// over the N target words of `lengths`, nats. queries [T, B, Q] are what the attention was asked at each step,
/// gold [T, B, S] the rows A, each of sum 1; a row that is alike everywhere says and costs nothing.
///
/// The weights are had as contexts of unit_annotations, so that any attention can be guided whose context is
/// the mean of its annotations.
/// @throws Error for one whose context is not: of several heads.
Var guided_alignment(const Attention& attention, const Input& queries, const AttentionMemory& memory,
                     const Tensor& gold, const Tensor& lengths);

}  // namespace gradus::nn
