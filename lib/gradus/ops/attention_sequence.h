#pragma once

#include <gradus/autograd.h>

namespace gradus {

struct AttentionSequence {
  Var context;     ///< [T, B, D]
  Tensor weights;  ///< [T, B, S], for looking at
};

/// Multiplicative attention (Luong et al. 2015) for a whole sequence of queries that do not depend on contexts:
/// all T steps at once, a few products for each sentence. q [T, B, D'], keys [S, B, D'], annotations [S, B, D],
/// mask u8 [B, S] or undefined.
///   e_b = scale q_b keys_b^T [T, S]      a_b = softmax over real positions      c_b = a_b H_b
/// Backward, g = dc:  da_b = g_b H_b^T, de as in softmax, dH_b = a_b^T g_b, dq_b = scale de_b keys_b,
/// dkeys_b = scale de_b^T q_b.
/// Positions behind a sentence's last real one are never read; masked ones before it must hold finite numbers.
/// @throws Error for shapes that do not fit.
AttentionSequence multiplicative_attention_sequence(const Input& q, const Var& keys, const Var& annotations,
                                                    double scale = 1, const Tensor& mask = {});

}  // namespace gradus
