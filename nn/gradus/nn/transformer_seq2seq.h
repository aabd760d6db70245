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
  int64_t num_layers = 2;       ///< of the encoder, and of the decoder
  int64_t dim_feedforward = 0;  ///< 0: 4 d_model
  double dropout = 0;
  bool norm_first = true;                ///< pre-LN
  double temperature = 1;                ///< of all attentions: scores are divided by it, besides sqrt(d)
  std::string activation = "relu";       ///< or "gelu"
  std::string positions = "sinusoidal";  ///< a name make_positions knows
  int64_t max_positions = 256;           ///< of learned positions
  bool tie_embeddings = true;  ///< one matrix for target words going in and coming out (Press & Wolf 2017)
  bool tie_source = false;     ///< and for source words, of the same vocabulary (Vaswani et al. 2017, 3.4)
  /// false: in training each target word sees the ones after it, to show what the mask is for. In translating
  /// there are none.
  bool causal = true;
};

/// The translator of Vaswani et al. 2017: words times sqrt(d_model) plus positions, encoder, decoder, output
/// layer. Matrices start from Xavier's uniform distribution, word vectors from N(0, 1 / d_model).
struct TransformerSeq2Seq : TranslationModel {
  TransformerConfig config;
  Embedding source_embedding, target_embedding;
  std::unique_ptr<Positions> source_positions, target_positions;  ///< null: none
  Dropout dropout;                                                ///< on words and positions
  TransformerEncoder encoder;
  TransformerDecoder decoder;
  Parameter output_weight;  ///< [V, d_model]; tied to target_embedding.weight, or its own
  Parameter output_bias;    ///< [V]

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
