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
  int64_t attention_size = 0;       ///< 0: hidden_size
  int64_t num_layers = 1;           ///< of the encoder
  bool bidirectional = true;
  std::string attention = "bahdanau";  ///< a name make_attention knows, or "none"
  std::string decoder =
      "auto";  ///< "bahdanau" or "luong" order; auto: the one the attention was published with
  bool input_feeding = true;        ///< of the Luong order
  double dropout = 0;
  std::string readout = "tanh";     ///< or "maxout"
  AttentionOptions attention_options = {};
  std::string cell = "gru";      ///< a name cell_type knows, of encoder and decoder
  bool layer_norm = false;       ///< layer-normalised cells
  bool residual = false;         ///< encoder layers but the first add their input to their output
  bool variational = false;      ///< the encoder's dropout has one mask for all words of a sentence
  double recurrent_dropout = 0;  ///< on the encoder's states within their recurrent products
};

/// Encoder, decoder, output layer: the translator's model.
struct Seq2Seq : TranslationModel {
  Seq2SeqConfig config;
  Encoder encoder;
  std::unique_ptr<Decoder> decoder;
  Linear output;  ///< logits = W readout + b, [.., V]

  /// @throws Error for an unknown attention, decoder, readout or cell.
  Seq2Seq(const Seq2SeqConfig& config, Rng& rng, Caller caller = Caller::current());
  /// Hard attention in training learns by REINFORCE: `baseline` is what a word is expected to cost, in nats, such as a
  /// moving average of the batches before; the loss's value stays the cross-entropy.
  CrossEntropy loss(const Seq2SeqBatch& batch, double label_smoothing = 0, double weight = 1,
                    double baseline = 0, Caller caller = Caller::current()) const override;
  ShardOutput before_output(const Seq2SeqBatch& batch, double label_smoothing = 0, double weight = 1,
                            double baseline = 0, Caller caller = Caller::current()) const override;
  OutputLayer output_layer() const override;
  Tensor align(const Seq2SeqBatch& batch, Caller caller = Caller::current()) const override;
  Tensor word_losses(const Seq2SeqBatch& batch, Caller caller = Caller::current()) const override;
  bool attends() const override { return config.attention != "none"; }
  std::unique_ptr<Generator> generator(int64_t rows = kManyRows) const override;
  void params(ParamVisitor& visit) override;
};

}  // namespace gradus::nn
