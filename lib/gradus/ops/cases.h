#pragma once

// Internal: what the cases of many ops share. Not installed.

#include <utility>

#include <gradus/op_case.h>

namespace gradus {

/// f of a case's inputs, as many as it takes, and of `more` after them: calls(layer_norm, 0.5).
template <class... P, class... More>
OpFunction calls(Var (*f)(P...), const More&... more) {
  return [=](const std::vector<Var>& in) {
    auto of = [&]<size_t... i>(std::index_sequence<i...>) { return f(in[i]..., more...); };
    return of(std::make_index_sequence<sizeof...(P) - sizeof...(more)>());
  };
}

/// f under Training: every call of a case draws the same masks.
inline OpFunction training(uint64_t seed, const OpFunction& f) {
  return [=](auto& in) {
    Training mode(seed);
    return f(in);
  };
}

/// Real positions [B, S] = [3, 4] of sources of 4, 0 and 2 words.
inline Tensor case_mask() { return Tensor::from({3, 4}, {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0}, DType::u8); }

}  // namespace gradus
