#pragma once

#include <gradus/autograd.h>

// The parts of an attention step as ops of their own, for attentions that do something between score and
// context, or whose weights must be differentiable. Time-major: keys [S, B, A], annotations [S, B, D]; scores
// and weights are [B, S].

namespace gradus {

/// e_bs = v . tanh(u_b + keys_sb).  u [B, A], keys [S, B, A], v [A] -> [B, S]
///   T_bs = tanh(u_b + keys_sb)      dz_bs = de_bs v (1 - T_bs^2)
///   dv = sum_bs de_bs T_bs          du_b = sum_s dz_bs          dkeys_sb = dz_bs
Var additive_scores(const Input& u, const Var& keys, const Var& v);

/// e_bs = scale q_b . keys_sb.  q [B, A], keys [S, B, A] -> [B, S]
///   dq_b = scale sum_s de_bs keys_sb      dkeys_sb = scale de_bs q_b
Var multiplicative_scores(const Input& q, const Var& keys, double scale = 1);

/// c_b = sum_s w_bs H_sb over the real positions.  weights [B, S], annotations [S, B, D] -> [B, D]
///   dw_bs = dc_b . H_sb      dH_sb = w_bs dc_b      both 0 at masked positions, which are never read
/// mask u8 [B, S], 1 = real, or undefined.
Var weighted_sum(const Input& weights, const Var& annotations, const Tensor& mask = {});

}  // namespace gradus
