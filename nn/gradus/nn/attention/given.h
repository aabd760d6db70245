#pragma once

#include <gradus/nn/attention/attention.h>

// Attentions that learn nothing: what learned ones are measured against.

namespace gradus::nn {

/// The same weight for all real positions: the mean of the annotations. No parameters.
struct UniformAttention : ScoredAttention {
  UniformAttention(const AttentionSizes& sizes, const RngInput&) : ScoredAttention(sizes.options) {}
  /// Zeros.
  Var scores(const Input& query, const AttentionMemory& memory, const AttentionState& state) const override;
};

/// The weights come from outside (memory.given [T, B, S], such as gold alignments), row t for step t, and are
/// taken as they are: an upper bound for what learned attention can bring. A step that nothing is given for
/// (nobody knows the alignment of a new translation) looks everywhere equally. No parameters.
struct OracleAttention : UniformAttention {
  using UniformAttention::UniformAttention;
  /// @throws Error "[OracleAttention] weights must be [T, B, S] = [.., 3, 4]: [5, 3, 6]".
  Attended step(const Input&, const AttentionMemory&, const AttentionState&) const override;
};

/// Row t of memory.given as [B, S], or undefined where it has none.
Tensor given_row(const char* who, const AttentionMemory& memory, int64_t t, DType dtype);

}  // namespace gradus::nn
