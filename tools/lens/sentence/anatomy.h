#pragma once

#include <cstdint>

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/multihead_attention.h>

namespace lens {

/// What is computed in a step; `Dissection::stages` is the order.
enum class Stage {
  projected,
  keys,
  hidden,
  scores,
  weights,
  context,
  state,
  readout,
  logits,
  probabilities,
  loss
};

/// What happens inside a step of attention, one value after the other. S source words, one sentence, M heads.
struct Attending {
  /// [1, Q], what asks
  gradus::Var query;
  /// [1, A], the query as the keys are compared with it; undefined where it is the query itself.
  gradus::Var projected;
  /// [S, 1, A]; undefined where the score does not read any
  gradus::Var keys;
  /// [S, 1, A], tanh(projected + keys); undefined unless the score has a hidden layer
  gradus::Var hidden;
  /// [M, S], scaled, before the temperature
  gradus::Var scores;
  /// [M, S]
  gradus::Var weights;
  /// [1, D]
  gradus::Var context;
};

/// An attention taken apart into these values, each from the ones before, so that any of them can be looked at,
/// differentiated, or changed and computed on from.
class Anatomy {
 public:
  /// @throws gradus::Error when its steps are no softmax of scores.
  explicit Anatomy(const gradus::nn::Attention& attention);

  enum class Kind { additive, multiplicative, multihead, other };
  Kind kind = Kind::other;
  int64_t heads = 1;
  /// keys are W_k annotations; false: the annotations themselves
  bool key_weight = false;
  /// of the scores: 1 / sqrt(d), 0.5, ...
  double scale = 1;

  /// Fills the field of a stage, up to the context, from the fields before it. Keys are made of the annotations
  /// `scored`, the context of `mixed`; scores of kind `other` read `scored` and the state themselves.
  void compute(Stage stage, Attending& a, const gradus::Var& scored, const gradus::Var& mixed,
               const gradus::nn::AttentionState& state) const;
  /// A source's memory with contexts made of other annotations than scores are.
  gradus::nn::AttentionMemory mixing(gradus::nn::AttentionMemory memory, const gradus::Var& annotations) const;
  /// What the next step gets.
  gradus::nn::AttentionState next(const Attending& a, const gradus::nn::AttentionState& state) const;

  /// What each word puts into the context per unit of weight, [M, S, D]: context = sum_ms weights_ms
  /// contribution_ms + offset [D] (undefined: 0).
  struct Contributions {
    gradus::Tensor each, offset;
  };
  Contributions contributions(const gradus::Tensor& annotations) const;

  double temperature() const { return attention_.options.temperature; }

 private:
  gradus::Var scores(const Attending& a, const gradus::Var& annotations,
                     const gradus::nn::AttentionState& state) const;
  gradus::Var context(const Attending& a, const gradus::Var& annotations) const;

  const gradus::nn::Attention& attention_;
  const gradus::nn::MultiheadAttention* multihead_ = nullptr;
  // of kind `other`
  const gradus::nn::ScoredAttention* scored_ = nullptr;
  gradus::Var query_weight_, query_bias_, score_vector_;
};

}  // namespace lens
