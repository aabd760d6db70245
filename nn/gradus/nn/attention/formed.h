#pragma once

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/linear.h>

namespace gradus::nn {

/// What most published scores are made of. They compare a projected query with projected annotations, the keys:
///   additive: e = scale v . tanh(W1 query + W2 annotation)      Bahdanau et al. 2014
///   dot:      e = scale (W1 query) . (W2 annotation)            Luong et al. 2015, Vaswani et al. 2017
struct ScoreForm {
  enum class Kind { additive, dot };

  Kind kind;
  /// W1 [A, Q] and W2 [A, D]; none: the query or annotation itself, whose size is A
  WeightPart query, key;
  /// [A], additive only
  Var v = {};
  double scale = 1;

  /// W1 x of queries x [.., Q].
  Var project(const Input& queries) const;
  /// The form of these scores divided by a temperature; an additive one has its whole scale in v.
  /// @throws Error when v is missing from an additive form, or there in another one; for a scale of 0.
  ScoreForm over(double temperature) const;
};

/// An attention that states the form of its scores and computes nothing else. The form is read by training (a
/// whole target as one op), by decoding (weights packed once) and by lens (the score taken apart), so an
/// attention that is written this way is fast and explained. What they read is what a step does: nothing here
/// can be overridden but `form`.
struct FormedAttention : ScoredAttention {
  using ScoredAttention::ScoredAttention;

  virtual ScoreForm form() const = 0;
  /// The same of scores / temperature, which is what goes into the softmax.
  ScoreForm tempered_form() const { return form().over(options.temperature); }

  AttentionMemory prepare(const Input& annotations, const Tensor& mask) const final {
    return Attention::prepare(annotations, mask);
  }
  /// W2 annotations.
  Var keys_of(const Input& annotations) const final;
  AttentionState start(const AttentionMemory& memory) const final { return Attention::start(memory); }
  Var scores(const Input& query, const AttentionMemory& memory, const AttentionState& state) const final;
  /// Score, softmax and context are one op.
  Attended step(const Input& query, const AttentionMemory& memory, const AttentionState& state) const final;
  /// A few products for all steps of dot scores.
  AttendedSequence sequence(const Input& queries, const AttentionMemory& memory) const final;
  int64_t context_size(int64_t annotation_size) const final { return annotation_size; }
};

/// The attention as one that states its form; null when it does not.
const FormedAttention* as_formed(const Attention& attention);

}  // namespace gradus::nn
