#pragma once

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/linear.h>

namespace gradus::nn {

/// Luong et al. 2015, "location": the weights come from the query alone, a = softmax(W query) cut to the
/// source's length; what stands at a position is not asked. Parameter: position.weight = W [max_positions, Q].
/// Source positions from max_positions on are never looked at.
struct LocationAttention : ScoredAttention {
  Linear position;

  /// @throws Error when max_positions is not positive.
  LocationAttention(const AttentionSizes& sizes, const RngInput& rng);
  Var scores(const Input& query, const AttentionMemory& memory, const AttentionState& state) const override;
  Attended step(const Input&, const AttentionMemory&, const AttentionState&) const override;
  void params(ParamVisitor& visit) override { visit("position", position); }
};

/// What local-m and local-p share: a score (`score` of the options, general by default) and a softmax over the
/// positions centre - D .. centre + D, D = window, as far as the source goes.
struct LocalAttention : BorrowingAttention {
  /// @throws Error when the window is not positive, or `score` names an attention that is no score with a
  /// softmax.
  LocalAttention(const AttentionSizes& sizes, const RngInput& rng);

 protected:
  /// u8 [B, S]: real and within the window around centre_b.
  Tensor window(const std::vector<int64_t>& centre, const AttentionMemory& memory) const;
};

/// Luong et al. 2015, section 3.2, "monotonic": the window of target word t stands at p_t = t; behind the end
/// of the source it stays at the last word. Parameters: score.*
struct LocalMonotonicAttention : LocalAttention {
  using LocalAttention::LocalAttention;
  Attended step(const Input&, const AttentionMemory&, const AttentionState&) const override;
};

/// Luong et al. 2015, section 3.2, "predictive": the centre is predicted and a Gaussian stands on it,
///   p = L sigmoid(v . tanh(W query)), L the source's length
///   weights_s = softmax_s(scores in floor(p) - D .. floor(p) + D) exp(-(s - p)^2 / (2 sigma^2)), sigma = D / 2
/// As in the paper the weights are not made to sum to 1 again. floor has no gradient: p's comes through the
/// Gaussian. Parameters: score.*, position.weight = W [A, Q], v [A].
struct LocalPredictiveAttention : LocalAttention {
  Linear position;
  Parameter v;

  LocalPredictiveAttention(const AttentionSizes& sizes, const RngInput& rng);
  Attended step(const Input&, const AttentionMemory&, const AttentionState&) const override;
  void params(ParamVisitor& visit) override {
    LocalAttention::params(visit);
    visit("position", position);
    visit("v", v);
  }
  /// p [B].
  Var centre(const Input& query, const AttentionMemory& memory) const;
};

}  // namespace gradus::nn
