#pragma once

#include <cstdint>

// One step of attention for B queries. Source positions come first (time-major): keys [S, B, A], annotations
// [S, B, D]; weights and mask are [B, S], mask 1 = real, may be null. A query with no real position has
// weights 0 and context 0, and all its gradients are 0.

namespace gradus::kernels {

constexpr int64_t kAllQueries = -1;

/// Additive (Bahdanau et al. 2014): e_bs = v . tanh(u_b + keys_sb), a = masked softmax,
/// c_b = sum_s a_bs H_sb. u [B, A] (the projected query), v [A] -> weights [B, S], context [B, D].
/// `context_stride` is the distance between rows of context (D when packed). tanh is not kept; the backward
/// computes it again from u and keys. With `queries` only the first so many of the B queries are asked.
template <class T>
void additive_attention(int64_t S, int64_t B, int64_t A, int64_t D, const T* keys, const T* annotations,
                        const T* u, const T* v, const uint8_t* mask, T* weights, T* context,
                        int64_t context_stride, int64_t queries = kAllQueries);

/// With dc = dcontext [B, D] (rows `dcontext_stride` apart):
///   da_bs = H_sb . dc_b      de = a (da - sum_k a_k da_k)      dz_sb = de_bs v (1 - tanh^2)
/// writes du [B, A] = sum_s dz_sb, and ADDS: dv [A] += sum de tanh, dkeys [S, B, A] += dz,
/// dannotations [S, B, D] += a_bs dc_b (the last two may be null). Masked positions are not touched.
template <class T>
void additive_attention_backward(int64_t S, int64_t B, int64_t A, int64_t D, const T* keys,
                                 const T* annotations, const T* u, const T* v, const uint8_t* mask,
                                 const T* weights, const T* dcontext, int64_t dcontext_stride, T* du, T* dv,
                                 T* dkeys, T* dannotations, int64_t queries = kAllQueries);

/// y = exp(2 x), n numbers. False, and what y holds is not defined, when some |x| is above 20 (or NaN).
bool exp_of_double(int64_t n, const float* x, float* y);
/// additive_attention for one query, from exp(2u) [A] and exp(2 keys) [S, A] of exp_of_double: with
///   tanh(u + key) = 1 - 2 / (1 + exp(2u) exp(2 key))
/// keys that meet many queries, those of a search, have their exponentials taken once. Differs from
/// additive_attention by rounding: some 2e-7 for each tanh, relative to 1.
void additive_attention_of_exp(int64_t S, int64_t A, int64_t D, const float* exp_keys,
                               const float* annotations, const float* exp_u, const float* v, float* weights,
                               float* context);

/// Multiplicative (Luong et al. 2015): e_bs = scale q_b . keys_sb with q [B, D], keys [S, B, D] and
/// annotations [S, B, Da] -> weights [B, S], context [B, Da]. For dot the keys are the annotations themselves
/// (same pointer). `queries` as above.
template <class T>
void multiplicative_attention(int64_t S, int64_t B, int64_t D, int64_t Da, const T* keys, const T* annotations,
                              const T* q, T scale, const uint8_t* mask, T* weights, T* context,
                              int64_t context_stride, int64_t queries = kAllQueries);
/// Writes dq [B, D] = scale sum_s de_bs keys_sb, and ADDS dkeys [S, B, D] += scale de_bs q_b, dannotations +=
/// a_bs dc_b (the two may be the same array; either may be null).
template <class T>
void multiplicative_attention_backward(int64_t S, int64_t B, int64_t D, int64_t Da, const T* keys,
                                       const T* annotations, const T* q, T scale, const uint8_t* mask,
                                       const T* weights, const T* dcontext, int64_t dcontext_stride, T* dq,
                                       T* dkeys, T* dannotations);

}  // namespace gradus::kernels
