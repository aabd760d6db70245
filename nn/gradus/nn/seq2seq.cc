#include <gradus/nn/seq2seq.h>

#include <gradus/ops/output_loss.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

// Dot attention compares states with annotations directly: both directions together must have the decoder's size.
int64_t encoder_hidden_size(const Seq2SeqConfig& c) {
  return c.attention == "dot" && c.bidirectional ? c.hidden_size / 2 : c.hidden_size;
}

std::unique_ptr<Decoder> make_decoder(const Seq2SeqConfig& c, int64_t annotation_size, Rng& rng) {
  DecoderSizes sizes{c.target_vocabulary, c.embedding_dim, c.hidden_size, annotation_size, encoder_hidden_size(c)};
  DecoderOptions options{.dropout = c.dropout, .padding_idx = kPad, .input_feeding = c.input_feeding};
  if (c.attention == "none") return std::make_unique<PlainDecoder>(sizes, rng, options);
  auto attention = make_attention(
      c.attention, {c.hidden_size, annotation_size, c.attention_size ? c.attention_size : c.hidden_size}, rng);
  bool multiplicative = c.attention == "dot" || c.attention == "general" || c.attention == "luong" || c.attention == "concat";
  std::string order = c.decoder != "auto" ? c.decoder : multiplicative ? "luong" : "bahdanau";
  if (order == "bahdanau") return std::make_unique<BahdanauDecoder>(sizes, std::move(attention), rng, options);
  if (order == "luong") return std::make_unique<LuongDecoder>(sizes, std::move(attention), rng, options);
  fail("Seq2Seq", "unknown decoder \"" + c.decoder + "\": one of auto, bahdanau, luong");
}

}  // namespace

Seq2Seq::Seq2Seq(const Seq2SeqConfig& c, Rng& rng)
    : config(c),
      encoder(c.source_vocabulary, c.embedding_dim, encoder_hidden_size(c), rng,
              {.num_layers = c.num_layers, .bidirectional = c.bidirectional, .dropout = c.dropout, .padding_idx = kPad}),
      decoder(make_decoder(c, encoder.annotation_size, rng)),
      output(c.hidden_size, c.target_vocabulary, rng) {}

CrossEntropy Seq2Seq::loss(const Seq2SeqBatch& batch, double label_smoothing, double weight) const {
  Encoded source = encoder(batch.source, batch.source_lengths);
  DecoderOutputs out = (*decoder)(batch.target_in, source);
  Scope scope("output");
  int64_t rows = batch.target_out.numel();
  return linear_cross_entropy(reshape(out.readout, {rows, out.readout.size(-1)}), output.weight, output.bias,
                              batch.target_out.reshape({rows}),
                              {.ignore_index = kPad, .label_smoothing = label_smoothing, .weight = weight});
}

Tensor Seq2Seq::align(const Seq2SeqBatch& batch) const {
  NoGrad guard;
  return (*decoder)(batch.target_in, encoder(batch.source, batch.source_lengths)).weights;
}

void Seq2Seq::params(ParamVisitor& visit) {
  visit("encoder", encoder);
  visit("decoder", *decoder);
  visit("output", output);
}

}  // namespace gradus::nn
