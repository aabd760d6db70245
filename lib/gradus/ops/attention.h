#pragma once

#include <gradus/autograd.h>

// One step of attention. Sources are time-major: keys [S, B, A], annotations [S, B, D]. mask is u8 [B, S], 1 =
// real, undefined: all real. A query with nothing real to look at gets weights 0 and context 0.

namespace gradus {

struct AttentionStep {
  /// [B, D]
  Var context;
  /// [B, S], for looking at
  Tensor weights;
};

/// Bahdanau et al. 2014, appendix A.1.2: e_bs = v . tanh(u_b + keys_sb), u = W1 query, keys = W2 annotations;
/// a = softmax_s(e), c_b = sum_s a_bs H_sb. u [B, A], v [A].
AttentionStep additive_attention(const Input& u, const Var& keys, const Var& annotations, const Var& v,
                                 const Tensor& mask = {});

/// Luong et al. 2015: e_bs = scale q_b . keys_sb. q [B, D'], keys [S, B, D']: annotations (dot), or W_a times
/// annotations (general).
AttentionStep multiplicative_attention(const Input& q, const Var& keys, const Var& annotations,
                                       double scale = 1, const Tensor& mask = {});

/// u8 [B, S] with ones at the first lengths[b] positions; lengths i32 [B].
/// @throws Error unless lengths are i32 [B] in 0 .. S.
Tensor length_mask(const Input& lengths, int64_t S);

namespace reference {
/// Composed of elementary ops; here the weights are differentiable.
struct AttentionStep {
  Var context, weights;
};
AttentionStep additive_attention(const Input& u, const Var& keys, const Var& annotations, const Var& v,
                                 const Tensor& mask = {});
AttentionStep multiplicative_attention(const Input& q, const Var& keys, const Var& annotations,
                                       double scale = 1, const Tensor& mask = {});
}  // namespace reference

}  // namespace gradus
