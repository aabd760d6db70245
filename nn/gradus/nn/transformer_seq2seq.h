#pragma once

#include <gradus/nn/embedding.h>
#include <gradus/nn/positions.h>
#include <gradus/nn/transformer.h>
#include <gradus/nn/translation_model.h>

#include <memory>
#include <string>

namespace gradus::nn {

struct TransformerConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t d_model = 128;
  int64_t num_heads = 4;
  /// Of the encoder, and of the decoder
  int64_t num_layers = 2;
  /// 0: 4 d_model
  int64_t dim_feedforward = 0;
  double dropout = 0;
  bool norm_first = true;
  /// Of all attentions: scores are divided by it, besides sqrt(d)
  double temperature = 1;
  /// "relu" or "gelu"
  std::string activation = "relu";
  /// A name make_positions knows
  std::string positions = "sinusoidal";
  /// Of learned positions
  int64_t max_positions = 256;
  /// One matrix for target words going in and coming out (Press & Wolf 2017)
  bool tie_embeddings = true;
  /// The same for source words, of the same vocabulary (Vaswani et al. 2017, 3.4)
  bool tie_source = false;
  /// false: in training each target word sees the ones after it, to show what the mask is for. In translating
  /// there are none.
  bool causal = true;
};

/// The translator of Vaswani et al. 2017: words times sqrt(d_model) plus positions, encoder, decoder, output
/// layer. Matrices start from Xavier's uniform distribution, word vectors from N(0, 1 / d_model).
struct TransformerSeq2Seq : TranslationModel {
  TransformerConfig config;
  Embedding source_embedding, target_embedding;
  /// null: none
  std::unique_ptr<Positions> source_positions, target_positions;
  /// On words and positions
  Dropout dropout;
  TransformerEncoder encoder;
  TransformerDecoder decoder;
  /// [V, d_model], tied to target_embedding.weight or its own, and [V]
  Parameter output_weight, output_bias;

  /// @throws Error for sizes that do not fit, unknown positions or activation.
  TransformerSeq2Seq(const TransformerConfig& config, const RngInput& rng);
  ShardOutput hidden_states(const Seq2SeqBatch& batch, const LossOptions& options = {}) const override;
  OutputLayer output_layer() const override;
  /// The mean over heads of the last decoder layer's cross-attention.
  Tensor align(const Seq2SeqBatch& batch) const override;
  bool attends() const override { return true; }
  /// In f32 with packed weights.
  std::unique_ptr<Generator> generator(const GeneratorOptions& options = {}) const override;
  /// By the layers' own steps, which the packed way is tested against.
  std::unique_ptr<Generator> composed_generator() const;
  void params(ParamVisitor& visit) override {
    visit("source_embedding", source_embedding);
    visit("target_embedding", target_embedding);
    visit("source_positions", source_positions);
    visit("target_positions", target_positions);
    visit("encoder", encoder);
    visit("decoder", decoder);
    visit("output.weight", output_weight);
    visit("output.bias", output_bias);
  }

  /// ids i32 [S, B], mask u8 [B, S] -> [S, B, d_model].
  Var encode(const Tensor& ids, const Tensor& mask) const;
  /// Target words i32 [T, B], the first of them at position `first`, ready for the decoder: [T, B, d_model].
  Var embed_target(const Tensor& ids, int64_t first = 0) const;
};

}  // namespace gradus::nn
