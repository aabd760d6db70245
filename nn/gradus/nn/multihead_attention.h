#pragma once

#include <gradus/nn/linear.h>
#include <gradus/nn/module.h>
#include <gradus/ops/scaled_dot_product_attention.h>

namespace gradus::nn {

struct MultiheadAttentionOptions {
  /// Sizes of keys and values; 0: embed_dim
  int64_t kdim = 0, vdim = 0;
  /// Of the weights, under Training
  double dropout = 0;
  bool bias = true;
  /// Scores are divided by it, too: 1 / sqrt(E / num_heads) leaves q . k as it is
  double temperature = 1;
};

/// What a call may look at, and what it returns.
struct AttendOptions {
  /// u8 [B, S], 1 = real key; undefined: all real
  Tensor mask = {};
  /// The queries are the last T of the S positions and look back only
  bool causal = false;
  bool weights = false;
  /// Of the scores; 0: the layer's own
  double scale = 0;
};

struct MultiheadAttentionOutput {
  /// [T, B, E]
  Var output;
  /// [T, B, S], mean over heads; undefined unless asked for
  Tensor weights;
  /// [B, num_heads, T, S]
  Tensor head_weights;
  std::vector<Var> vars() const { return {output}; }
};

/// Keys and values of the words so far, for decoding word by word: projected once, kept. Numbers only.
struct KeyValueCache {
  /// [capacity, B, 2E]: keys, then values; rows from `length` on are free
  Tensor keys_values;
  int64_t length = 0;

  /// Takes keys and values [1, B, 2E] of the next word in; the capacity doubles where needed.
  /// @throws Error for a row of another size.
  void append(const Tensor& row);
  /// [length, B, 2E]; a view.
  Tensor used() const { return keys_values.rows(0, length); }
  /// Sentence rows[i] in place i; one may come several times, others not at all.
  /// @throws Error for one that does not exist.
  void select(const std::vector<int64_t>& rows);
};

/// Multi-head attention (Vaswani et al. 2017, section 3.2.2), parameters as torch.nn.MultiheadAttention:
///   [q ; k ; v] = in_proj_weight x + in_proj_bias
///   output = out_proj(concatenated heads), each attending by itself, its scores times `scale`
/// in_proj_weight [3E, E], or q_proj_weight [E, E], k_proj_weight [E, kdim], v_proj_weight [E, vdim] where
/// those sizes differ; in_proj_bias [3E]. Everything is time-major: queries [T, B, E], keys
/// and values [S, B, ..].
struct MultiheadAttention {
  int64_t embed_dim, num_heads;
  double dropout;
  /// Of the scores: 1 / (sqrt(E / num_heads) temperature)
  double scale = 1;
  Parameter in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias;
  Linear out_proj;

  /// @throws Error "[MultiheadAttention] embed_dim must be a multiple of num_heads: 10, 4", or when the
  /// temperature is not positive.
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, const RngInput& rng,
                     const MultiheadAttentionOptions& options = {});
  /// One product projects all three where they are the same, and keys and values where they are.
  MultiheadAttentionOutput operator()(const Input& query, const Var& key, const Var& value,
                                      const AttendOptions& options = {}) const;
  void params(ParamVisitor& visit) {
    visit("in_proj_weight", in_proj_weight);
    visit("q_proj_weight", q_proj_weight);
    visit("k_proj_weight", k_proj_weight);
    visit("v_proj_weight", v_proj_weight);
    visit("in_proj_bias", in_proj_bias);
    visit("out_proj", out_proj);
  }

  // In pieces, for decoding: what does not change is projected once.

  /// Keys and values of a source, side by side: [S, B, kdim] -> [S, B, 2E].
  Var project_memory(const Input& memory) const;
  /// Queries [T, B, E] -> [T, B, E].
  Var project_queries(const Input& queries) const;
  /// What the heads found side by side, through out_proj.
  MultiheadAttentionOutput finish(const ScaledDotProduct& heads) const;
  /// Queries [T, B, E], not yet projected, on what project_memory made.
  MultiheadAttentionOutput attend(const Input& query, const Var& keys_values,
                                  const AttendOptions& options = {}) const;
  /// Self-attention of one more word [1, B, E], which joins the cache and sees all that it holds.
  Var step(const Input& x, KeyValueCache& cache) const;

 private:
  // Rows begin .. end - 1 of the three blocks of E rows of weight and bias applied to x.
  Var project(const Var& x, int64_t begin, int64_t end) const;
};

}  // namespace gradus::nn
