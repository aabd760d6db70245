#pragma once

#include <gradus/autograd.h>

namespace gradus {

/// What stands around each position: a convolution of each row with K filters of odd width W = 2 r + 1, zeros
/// outside, as conv1d with padding r (Chorowski et al. 2015, eq. 8).  weights [B, S], filters [K, W] ->
/// [S, B, K]
///   f_sbk = sum_j F_kj w_b,s+j-r
///   dw_b,s+j-r += sum_k df_sbk F_kj      dF_kj = sum_sb df_sbk w_b,s+j-r
/// @throws Error "[location_features] filters must be [K, W] with W odd: [8, 4]".
Var location_features(const Input& weights, const Var& filters);

}  // namespace gradus
