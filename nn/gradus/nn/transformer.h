#pragma once

#include <gradus/nn/check.h>
#include <gradus/nn/dropout.h>
#include <gradus/nn/layer_norm.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/multihead_attention.h>

#include <optional>
#include <string>
#include <vector>

// The Transformer's layers (Vaswani et al. 2017, arXiv:1706.03762), parameters and their names as torch.nn's
// TransformerEncoderLayer and TransformerDecoderLayer. Time-major: x [T, B, E]; masks u8 [B, T], 1 is real.
//
// Each layer is a row of parts f (attention, feed-forward), each with a way around it:
//   post-LN, the paper's:   x <- norm(x + dropout(f(x)))
//   pre-LN (norm_first):    x <- x + dropout(f(norm(x)))      and one more norm after the last layer; learns
//                                                             without a careful warm-up (Xiong et al. 2020)

namespace gradus::nn {

struct TransformerOptions {
  int64_t dim_feedforward = 2048;
  /// After each part, inside the feed-forward one, and of the attention weights
  double dropout = 0.1;
  std::string activation = "relu";
  bool norm_first = false;
  /// Of all attentions, see MultiheadAttentionOptions
  double temperature = 1;
  double layer_norm_eps = 1e-5;
};

/// f(x) = linear2(dropout(activation(linear1(x)))) of both kinds of layers, whose own its parameters are.
struct FeedForward {
  Linear linear1, linear2;
  Dropout dropout;
  bool gelu;

  /// @throws Error "[Transformer] unknown activation \"tanh\": one of relu, gelu".
  FeedForward(int64_t d_model, const RngInput& rng, const TransformerOptions& options);
  Var operator()(const Input& x) const;
  void params(ParamVisitor& visit) {
    visit("linear1", linear1);
    visit("linear2", linear2);
  }
};

/// Which positions an encoder's self-attention looks at.
struct TransformerEncoderOptions {
  /// u8 [B, T]; undefined: all are real
  Tensor mask = {};
  /// Position t looks at 0 .. t: no output depends on what comes after it. A language model of such layers is a
  /// GPT (Radford et al. 2018).
  bool causal = false;
};

/// Self-attention, feed-forward.
struct TransformerEncoderLayer {
  MultiheadAttention self_attn;
  FeedForward feed_forward;
  LayerNorm norm1, norm2;
  Dropout dropout;
  bool norm_first;

  TransformerEncoderLayer(int64_t d_model, int64_t nhead, const RngInput& rng,
                          const TransformerOptions& options = {});
  Var operator()(const Input& x, const TransformerEncoderOptions& options) const;
  Var operator()(const Input& x, const Tensor& mask = {}) const { return (*this)(x, {.mask = mask}); }
  void params(ParamVisitor& visit) {
    visit("self_attn", self_attn);
    feed_forward.params(visit);
    visit("norm1", norm1);
    visit("norm2", norm2);
  }
};

struct TransformerDecoderOutput {
  /// [T, B, E]
  Var output;
  /// [T, B, S] of the last layer's cross-attention, mean over heads, if wanted
  Tensor weights;
  std::vector<Var> vars() const { return {output}; }
};

struct TransformerDecoderOptions {
  /// u8 [B, S]
  Tensor memory_mask = {};
  bool weights = false;
  /// false: words see those after them, where all are given at once
  bool causal = true;
};

/// What one decoder layer keeps between words.
struct TransformerLayerCache {
  /// Of the target so far
  KeyValueCache words;
  /// [S, B, 2E], keys and values of the source
  Tensor memory;
};

/// Self-attention that looks back only, cross-attention, feed-forward.
struct TransformerDecoderLayer {
  MultiheadAttention self_attn, multihead_attn;
  FeedForward feed_forward;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout;
  bool norm_first;

  TransformerDecoderLayer(int64_t d_model, int64_t nhead, const RngInput& rng,
                          const TransformerOptions& options = {});
  /// x [T, B, E] and memory [S, B, E], what the encoder made of the source.
  TransformerDecoderOutput operator()(const Input& x, const Var& memory,
                                      const TransformerDecoderOptions& options = {}) const;
  /// The next word alone, x [1, B, E]: the same output as its row of the whole.
  TransformerDecoderOutput step(const Input& x, TransformerLayerCache& cache,
                                const TransformerDecoderOptions& options = {}) const;
  void params(ParamVisitor& visit) {
    visit("self_attn", self_attn);
    visit("multihead_attn", multihead_attn);
    feed_forward.params(visit);
    visit("norm1", norm1);
    visit("norm2", norm2);
    visit("norm3", norm3);
  }
};

/// layers.0, layers.1, ..., and `norm` after the last with norm_first.
template <class Layer>
struct TransformerStack {
  std::vector<Layer> layers;
  std::optional<LayerNorm> norm;

  TransformerStack(int64_t num_layers, int64_t d_model, int64_t nhead, const RngInput& rng,
                   const TransformerOptions& options = {}) {
    At at(rng.caller());
    must_be_positive("Transformer", "num_layers", num_layers, kMostLayers);
    for (int64_t i = 0; i < num_layers; ++i) layers.emplace_back(d_model, nhead, rng, options);
    if (options.norm_first) norm.emplace(d_model, options.layer_norm_eps);
  }
  void params(ParamVisitor& visit) {
    visit("layers", layers);
    visit("norm", norm);
  }
};

struct TransformerEncoder : TransformerStack<TransformerEncoderLayer> {
  using TransformerStack::TransformerStack;
  Var operator()(const Input& x, const TransformerEncoderOptions& options) const;
  Var operator()(const Input& x, const Tensor& mask = {}) const { return (*this)(x, {.mask = mask}); }
};

struct TransformerDecoder : TransformerStack<TransformerDecoderLayer> {
  using TransformerStack::TransformerStack;
  TransformerDecoderOutput operator()(const Input& x, const Var& memory,
                                      const TransformerDecoderOptions& options = {}) const;
  /// For decoding word by word: the keys and values of a source, for every layer.
  std::vector<TransformerLayerCache> start(const Input& memory) const;
  /// @throws Error unless there is one cache for each layer.
  TransformerDecoderOutput step(const Input& x, std::vector<TransformerLayerCache>& caches,
                                const TransformerDecoderOptions& options = {}) const;
};

}  // namespace gradus::nn
