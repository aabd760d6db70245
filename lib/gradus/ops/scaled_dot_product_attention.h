#pragma once

#include <gradus/autograd.h>

// Attention of all queries of a batch at once, several heads side by side (Vaswani et al. 2017,
// arXiv:1706.03762, section 3.2). Time-major: queries [T, B, E], keys and values [S, B, ..]; head h of H owns
// columns h d .. (h+1) d - 1.
//
//   for each sentence b and head h, with Q [T, d], K [S, d], V [S, dv]:
//   P = softmax over allowed keys of (scale Q K^T)      O = P V
//
// A query that may look at nothing gets weights 0 and output 0. Scores exist for one head of one sentence and
// at most 64 queries at a time, and nothing but the inputs is saved: the backward makes the weights again
// (Rabe & Staats 2021, Dao et al. 2022). Keys behind a sentence's last real one are never read; masked ones
// before it must be finite.

namespace gradus {

struct ScaledDotProductOptions {
  int64_t heads = 1;
  /// Of the scores; 0: 1 / sqrt(d).
  double scale = 0;
  /// u8 [B, S], 1 = real key; undefined: all real.
  Tensor mask = {};
  /// Query t looks at keys 0 .. S - T + t: queries are the last of the S positions.
  bool causal = false;
  /// Of the weights, under Training, as dropout().
  double dropout = 0;
  /// Return the weights too.
  bool weights = false;
};

struct ScaledDotProduct {
  /// [T, B, H dv]
  Var output;
  /// [B, H, T, S], before dropout, for looking at; undefined unless asked for
  Tensor weights;
};

/// q [T, B, E], k [S, B, E], v [S, B, Ev].
/// @throws Error "[scaled_dot_product_attention] keys must be [S, B, E] for queries [T, B, E]: ...".
ScaledDotProduct scaled_dot_product_attention(const Input& q, const Var& k, const Var& v,
                                              const ScaledDotProductOptions& options = {});
/// The same of queries, keys and values side by side, as one projection makes them, [T, B, 3E]: no copies.
ScaledDotProduct packed_self_attention(const Input& qkv, const ScaledDotProductOptions& options = {});
/// The same with keys and values side by side: q [T, B, E], kv [S, B, 2E].
ScaledDotProduct packed_cross_attention(const Input& q, const Var& kv,
                                        const ScaledDotProductOptions& options = {});

namespace reference {
/// Composed of elementary ops.
Var scaled_dot_product_attention(const Input& q, const Var& k, const Var& v,
                                 const ScaledDotProductOptions& options = {});
}  // namespace reference

}  // namespace gradus
