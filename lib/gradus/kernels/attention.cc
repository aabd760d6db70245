#include <gradus/kernels/attention.h>
#include <gradus/kernels/simd_targets.h>

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/attention.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

// One query at a time, b outermost: its weights are complete before its context begins, and u, v, dc and the
// sums that grow over s stay in the first-level cache while keys and annotations stream by, each row once.

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

/// out += a[0] row_0 + ... + a[K-1] row_{K-1}, out read and written once for all of them.
template <int K, class T>
HWY_INLINE void add_rows(int64_t D, const T* const* rows, const T* a, T* out) {
  const Tag<T> d;
  for_lanes(d, D, [&](int64_t i, auto part) HWY_ATTR {
    auto sum = part.load(d, out + i);
    for (int k = 0; k < K; ++k) sum = hn::MulAdd(hn::Set(d, a[k]), part.load(d, rows[k] + i), sum);
    part.store(sum, d, out + i);
  });
}

/// out [D] = sum over real s of a_s row_s; the rows are `stride` apart.
template <class T>
HWY_INLINE void weighted_sum(int64_t S, int64_t D, const T* row, int64_t stride, const T* a,
                             const uint8_t* mask, T* out) {
  constexpr int kGroup = 8;
  const T* rows[kGroup];
  T weights[kGroup];
  int count = 0;
  std::fill_n(out, D, T(0));
  for (int64_t s = 0; s < S; ++s) {
    if (mask && !mask[s]) continue;
    rows[count] = row + s * stride;
    weights[count] = a[s];
    if (++count == kGroup) {
      add_rows<kGroup>(D, rows, weights, out);
      count = 0;
    }
  }
  int k = 0;
  if (count >= 4) {
    add_rows<4>(D, rows, weights, out);
    k = 4;
  }
  for (; k < count; ++k) add_rows<1>(D, rows + k, weights + k, out);
}

/// Both attentions, given score(b, s).
template <class T, class Score>
HWY_INLINE void attend(int64_t S, int64_t B, int64_t queries, int64_t D, const T* annotations,
                       const uint8_t* mask, T* weights, T* context, int64_t context_stride,
                       const Score& score) {
  // Some short ones together, such as heads: their softmaxes do not wait for each other.
  const int64_t together = D <= 128 ? 8 : 1;
  const auto real_of = [&](int64_t b) { return mask ? mask + b * S : nullptr; };
  for (int64_t first = 0; first < queries; first += together) {
    const int64_t end = std::min(queries, first + together);
    for (int64_t s = 0; s < S; ++s) {
      for (int64_t b = first; b < end; ++b) {
        const uint8_t* real = real_of(b);
        weights[b * S + s] = real && !real[s] ? -std::numeric_limits<T>::infinity() : score(b, s);
      }
    }
    for (int64_t b = first; b < end; ++b) softmax_lanes(weights + b * S, S);
    for (int64_t b = first; b < end; ++b) {
      const uint8_t* real = real_of(b);
      T* own = weights + b * S;
      for (int64_t s = 0; real && s < S; ++s) own[s] = real[s] ? own[s] : T(0);
      weighted_sum(S, D, annotations + b * D, B * D, own, real, context + b * context_stride);
    }
  }
}

/// The backward of softmax and weighted sum, the same for both: adds a_s dc to dannotations, and calls
/// with_de(b, s, de) for each real s, in order.
template <class T, class WithDe>
HWY_INLINE void attend_back(int64_t S, int64_t B, int64_t queries, int64_t D, const T* annotations,
                            const uint8_t* mask, const T* weights, const T* dcontext, int64_t dcontext_stride,
                            T* dannotations, const WithDe& with_de) {
  // da_s is wanted twice, before and after its mean is known. It is kept for the usual lengths and computed
  // again beyond: no allocation, no limit on S.
  constexpr int64_t kKept = 8192;
  T kept[kKept];
  for (int64_t b = 0; b < queries; ++b, weights += S, dcontext += dcontext_stride) {
    const uint8_t* real = mask ? mask + b * S : nullptr;
    const auto da_at = [&](int64_t s)
                           HWY_ATTR { return dot_lanes(annotations + (s * B + b) * D, dcontext, D); };
    T mean = 0;
    for (int64_t s = 0; s < S; ++s) {
      if (real && !real[s]) continue;
      const T da = da_at(s);
      if (s < kKept) kept[s] = da;
      mean += weights[s] * da;
    }
    for (int64_t s = 0; s < S; ++s) {
      if (real && !real[s]) continue;
      const T de = weights[s] * ((s < kKept ? kept[s] : da_at(s)) - mean);
      if (dannotations) axpy_lanes(weights[s], dcontext, dannotations + (s * B + b) * D, D);
      with_de(b, s, de);
    }
  }
}

template <class T>
void additive_attention(int64_t S, int64_t B, int64_t A, int64_t D, const T* keys, const T* annotations,
                        const T* u, const T* v, const uint8_t* mask, T* weights, T* context,
                        int64_t context_stride, int64_t queries) {
  const Tag<T> d;
  attend(S, B, queries == kAllQueries ? B : queries, D, annotations, mask, weights, context, context_stride,
         [&](int64_t b, int64_t s) HWY_ATTR {
           const T* key = keys + (s * B + b) * A;
           const T* query = u + b * A;
           auto sum = hn::Zero(d);
           for_lanes(d, A, [&](int64_t i, auto part) HWY_ATTR {
             const auto t = tanh_lanes(d, hn::Add(part.load(d, query + i), part.load(d, key + i)));
             sum = hn::MulAdd(part.load(d, v + i), t, sum);
           });
           return hn::GetLane(hn::SumOfLanes(d, sum));
         });
}

bool exp_of_double(int64_t n, const float* x, float* y) {
  constexpr float kLimit = 20;  // exp(4 limit) is far from infinity, and exp(-4 limit) from 0
  const Tag<float> d;
  bool within = true;
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const auto z = part.load(d, x + i);
    within &= hn::AllTrue(d, hn::Le(hn::Abs(z), hn::Set(d, kLimit)));
    part.store(exp_lanes(d, hn::Add(z, z)), d, y + i);
  });
  return within;
}

void additive_attention_of_exp(int64_t S, int64_t A, int64_t D, const float* exp_keys, const float* annotations,
                               const float* exp_u, const float* v, float* weights, float* context) {
  const Tag<float> d;
  const auto one = hn::Set(d, 1), minus_two = hn::Set(d, -2);
  attend(S, 1, 1, D, annotations, nullptr, weights, context, D, [&](int64_t, int64_t s) HWY_ATTR {
    const float* key = exp_keys + s * A;
    auto sum = hn::Zero(d);
    for_lanes(d, A, [&](int64_t i, auto part) HWY_ATTR {
      const auto b = hn::MulAdd(part.load(d, exp_u + i), part.load(d, key + i), one);
      sum = hn::MulAdd(part.load(d, v + i), hn::MulAdd(minus_two, divide(d, one, b), one), sum);
    });
    return hn::GetLane(hn::SumOfLanes(d, sum));
  });
}

template <class T>
void additive_attention_backward(int64_t S, int64_t B, int64_t A, int64_t D, const T* keys,
                                 const T* annotations, const T* u, const T* v, const uint8_t* mask,
                                 const T* weights, const T* dcontext, int64_t dcontext_stride, T* du, T* dv,
                                 T* dkeys, T* dannotations, int64_t queries) {
  const Tag<T> d;
  const auto one = hn::Set(d, 1);
  if (queries == kAllQueries) queries = B;
  std::fill_n(du, queries * A, T(0));
  const auto through_score = [&](int64_t b, int64_t s, T de) HWY_ATTR {
    const T *query = u + b * A, *key = keys + (s * B + b) * A;
    T *dquery = du + b * A, *dkey = dkeys ? dkeys + (s * B + b) * A : nullptr;
    const auto factor = hn::Set(d, de);
    for_lanes(d, A, [&](int64_t i, auto part) HWY_ATTR {
      const auto t = tanh_lanes(d, hn::Add(part.load(d, query + i), part.load(d, key + i)));
      const auto dz = hn::Mul(hn::Mul(factor, part.load(d, v + i)), hn::NegMulAdd(t, t, one));
      part.store(hn::Add(part.load(d, dquery + i), dz), d, dquery + i);
      part.store(hn::MulAdd(factor, t, part.load(d, dv + i)), d, dv + i);
      if (dkey) part.store(hn::Add(part.load(d, dkey + i), dz), d, dkey + i);
    });
  };
  attend_back(S, B, queries, D, annotations, mask, weights, dcontext, dcontext_stride, dannotations,
              through_score);
}

template <class T>
void multiplicative_attention(int64_t S, int64_t B, int64_t D, int64_t Da, const T* keys, const T* annotations,
                              const T* q, T scale, const uint8_t* mask, T* weights, T* context,
                              int64_t context_stride, int64_t queries) {
  attend(S, B, queries == kAllQueries ? B : queries, Da, annotations, mask, weights, context, context_stride,
         [&](int64_t b, int64_t s)
             HWY_ATTR { return scale * dot_lanes(q + b * D, keys + (s * B + b) * D, D); });
}

template <class T>
void multiplicative_attention_backward(int64_t S, int64_t B, int64_t D, int64_t Da, const T* keys,
                                       const T* annotations, const T* q, T scale, const uint8_t* mask,
                                       const T* weights, const T* dcontext, int64_t dcontext_stride, T* dq,
                                       T* dkeys, T* dannotations) {
  std::fill_n(dq, B * D, T(0));
  const auto through_score = [&](int64_t b, int64_t s, T de) HWY_ATTR {
    const int64_t row = (s * B + b) * D;
    axpy_lanes(scale * de, keys + row, dq + b * D, D);
    if (dkeys) axpy_lanes(scale * de, q + b * D, dkeys + row, D);
  };
  attend_back(S, B, B, Da, annotations, mask, weights, dcontext, dcontext_stride, dannotations,
              through_score);
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_KERNEL(additive_attention, 13);
GRADUS_KERNEL(additive_attention_backward, 17);
GRADUS_PLAIN_KERNEL(exp_of_double, 3);
GRADUS_PLAIN_KERNEL(additive_attention_of_exp, 9);
GRADUS_KERNEL(multiplicative_attention, 13);
GRADUS_KERNEL(multiplicative_attention_backward, 15);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
