#pragma once

// Sizes and inputs that the tests of the attentions share.

#include <string>
#include <vector>

#include <gradus/nn/attention/attention.h>
#include <gradus/ops.h>

namespace attentions {

inline constexpr int64_t S = 4, B = 3, T = 3, Q = 8, D = 8, A = 5;
inline constexpr int64_t kLengths[] = {4, 0, 2};  // the second sentence is empty

inline gradus::nn::AttentionSizes sizes() { return {Q, D, A}; }
inline gradus::Tensor mask() { return gradus::length_mask(gradus::Tensor::from_ids({B}, {4, 0, 2}), S); }
inline gradus::Tensor annotations(gradus::Rng& rng) { return gradus::Tensor::uniform({S, B, D}, -1, 1, rng); }
inline gradus::Tensor queries(gradus::Rng& rng) { return gradus::Tensor::uniform({T, B, Q}, -1, 1, rng); }

/// Weights from outside, [T, B, S], that sum to 1 over the real positions.
inline gradus::Tensor given(gradus::Rng& rng) {
  gradus::Tensor w = gradus::Tensor::zeros({T, B, S});
  for (int64_t t = 0; t < T; ++t)
    for (int64_t b = 0; b < B; ++b) {
      double sum = 0;
      for (int64_t s = 0; s < kLengths[b]; ++s) {
        double x = rng.uniform();
        w.set((t * B + b) * S + s, x);
        sum += x;
      }
      for (int64_t s = 0; s < kLengths[b]; ++s) w.set((t * B + b) * S + s, w.at((t * B + b) * S + s) / sum);
    }
  return w;
}

/// All but hard attention, whose choice has no gradient.
inline std::vector<std::string> soft_attentions() {
  std::vector<std::string> out;
  for (const std::string& name : gradus::nn::attention_names())
    if (name != "hard") out.push_back(name);
  return out;
}

/// The steps of a target, one after the other.
inline gradus::nn::AttendedSequence roll(const gradus::nn::Attention& attention,
                                         const gradus::nn::AttentionMemory& memory,
                                         const gradus::Var& queries) {
  gradus::nn::AttentionState state = attention.start(memory);
  std::vector<gradus::Var> contexts, weights;
  for (int64_t t = 0; t < queries.size(0); ++t) {
    gradus::nn::Attended a = attention.step(gradus::select(queries, 0, t), memory, state);
    contexts.push_back(a.context);
    weights.push_back(a.weights);
    state = a.state;
  }
  return {gradus::stack(contexts, 0), gradus::stack(weights, 0).value()};
}

}  // namespace attentions
