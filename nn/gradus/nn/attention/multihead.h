#pragma once

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/multihead_attention.h>

namespace gradus::nn {

/// Vaswani et al. 2017, section 3.2.2, with one query a step: each head compares its part of the projected
/// query with its part of the projected annotations, scaled dot products, and takes its own mean of their
/// projected values,
///   context = out_proj [head_1 ; .. ; head_h]      head_i = softmax_s(q_i . k_si / sqrt(Q / heads)) v_i
/// Keys and values of a source are projected once. Contexts have the query's size Q; `weights` are the mean
/// over heads, `head_weights` all of them. A source with nothing real gives the context out_proj.bias (0 at the
/// start). Parameters, as torch.nn.MultiheadAttention(Q, heads, kdim=D, vdim=D): in_proj_weight or q_, k_,
/// v_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias. With top_k each head keeps the k largest
/// weights of its own.
struct MultiheadSourceAttention : Attention {
  MultiheadAttention heads;

  /// @throws Error "[MultiheadAttention] embed_dim must be a multiple of num_heads: 10, 4".
  MultiheadSourceAttention(const AttentionSizes& sizes, const RngInput& rng);
  Var keys_of(const Input& annotations) const override { return heads.project_memory(annotations); }
  Attended step(const Input&, const AttentionMemory&, const AttentionState&) const override;
  AttendedSequence sequence(const Input& queries, const AttentionMemory& memory) const override;
  void params(ParamVisitor& visit) override { heads.params(visit); }
  int64_t context_size(int64_t) const override { return heads.embed_dim; }

 private:
  MultiheadAttentionOutput attend(const Input& queries, const AttentionMemory& memory) const;
  MultiheadAttentionOutput attend_to_some(const Input& query, const AttentionMemory& memory) const;
  double scale() const;
};

}  // namespace gradus::nn
