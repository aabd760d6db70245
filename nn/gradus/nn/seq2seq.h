#pragma once

#include <memory>
#include <string>

#include <gradus/nn/decoder.h>
#include <gradus/nn/encoder.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/translation_model.h>

namespace gradus::nn {

struct Seq2SeqConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t embedding_dim = 128, hidden_size = 128;
  /// Word vectors that are not tied start from N(0, its square)
  double embedding_deviation = 1;
  /// 0: hidden_size
  int64_t attention_size = 0;
  /// The encoder's layers; cell, dropout (on embeddings and readouts) and residual are the decoder's, too.
  RecurrentOptions rnn = {};
  int64_t decoder_layers = 1;
  /// A name make_attention knows, or "none"
  std::string attention = "bahdanau";
  /// "bahdanau" or "luong" order; auto: the one the attention was published with.
  std::string decoder = "auto";
  /// Of the Luong order
  bool input_feeding = true;
  /// "tanh" or "maxout"
  std::string readout = "tanh";
  /// One matrix for target words going in and coming out (Press & Wolf 2017)
  bool tie_embeddings = false;
  /// The same for source words, of the same vocabulary
  bool tie_source = false;
  AttentionOptions attention_options = {};

  bool bidirectional() const { return rnn.bidirectional.value_or(true); }
};

/// Encoder, decoder, output layer: the translator's model.
struct Seq2Seq : TranslationModel {
  Seq2SeqConfig config;
  Encoder encoder;
  std::unique_ptr<Decoder> decoder;
  /// logits = W readout + b, [.., V]
  Linear output;

  /// Word vectors tied to the output start from N(0, 1 / embedding_dim): the first logits are not far from 0.
  /// @throws Error for an unknown attention, decoder or readout, and for ties of what has not one size.
  Seq2Seq(const Seq2SeqConfig& config, const RngInput& rng);
  /// Of real steps only.
  ShardOutput hidden_states(const Seq2SeqBatch& batch, const LossOptions& options = {}) const override;
  OutputLayer output_layer() const override;
  Tensor align(const Seq2SeqBatch& batch) const override;
  bool attends() const override { return config.attention != "none"; }
  std::unique_ptr<Generator> generator(const GeneratorOptions& options = {}) const override;
  void params(ParamVisitor& visit) override {
    visit("encoder", encoder);
    visit("decoder", *decoder);
    visit("output", output);
  }
};

}  // namespace gradus::nn
