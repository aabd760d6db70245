#include <gradus/nn/seq2seq.h>

#include <gradus/nn/attention/hard.h>
#include <gradus/nn/check.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/concat_rows.h>
#include <gradus/ops/output_loss.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>

#include <algorithm>

namespace gradus::nn {
namespace {

// Where states are compared with annotations directly, both directions together must have the decoder's size.
int64_t encoder_hidden_size(const Seq2SeqConfig& c, Caller caller) {
  At at(caller);
  bool halves = c.bidirectional() && c.attention != "none" && attention_kind(c.attention).equal_sizes;
  return halves ? c.hidden_size / 2 : c.hidden_size;
}

ReadoutKind readout_kind(const std::string& name) {
  if (name == "tanh") return ReadoutKind::tanh;
  if (name == "maxout") return ReadoutKind::maxout;
  unknown_name("Seq2Seq", "readout", name, {"tanh", "maxout"});
}

std::unique_ptr<Decoder> make_decoder(const Seq2SeqConfig& c, int64_t annotation_size, Rng& rng,
                                      Caller caller) {
  At at(caller);
  DecoderSizes sizes{c.target_vocabulary, c.embedding_dim, c.hidden_size, annotation_size,
                     encoder_hidden_size(c, caller)};
  DecoderOptions options{.dropout = c.rnn.dropout,
                         .padding_idx = kPad,
                         .input_feeding = c.input_feeding,
                         .readout = readout_kind(c.readout),
                         .cell = c.rnn.cell};
  if (c.attention == "none") return std::make_unique<PlainDecoder>(sizes, rng, options);
  auto attention = make_attention(c.attention,
                                  {c.hidden_size, annotation_size,
                                   c.attention_size ? c.attention_size : c.hidden_size, c.attention_options},
                                  rng);
  std::string order = c.decoder != "auto"                       ? c.decoder
                      : attention_kind(c.attention).luong_order ? "luong"
                                                                : "bahdanau";
  if (order == "bahdanau")
    return std::make_unique<BahdanauDecoder>(sizes, std::move(attention), rng, options);
  if (order == "luong") return std::make_unique<LuongDecoder>(sizes, std::move(attention), rng, options);
  unknown_name("Seq2Seq", "decoder", c.decoder, {"auto", "bahdanau", "luong"});
}

Tensor real_words(const Tensor& targets) {
  Tensor real(targets.shape(), DType::u8);
  for (int64_t i = 0; i < targets.numel(); ++i) real.u8()[i] = targets.i32()[i] != kPad;
  return real;
}

// What each target word costs: readout [.., R], targets [..] -> [..]; 0 at padding.
Tensor word_costs(const Linear& output, const Tensor& readout, const Tensor& targets,
                  double label_smoothing) {
  NoGrad guard;
  return cross_entropy(
             output(readout), targets,
             {.ignore_index = kPad, .label_smoothing = label_smoothing, .reduction = Reduction::none})
      .loss.value();
}

// Numbers of the real steps [N] at their places in [T, B], 0 at padding.
Tensor at_steps(const Tensor& values, const Tensor& lengths, const Shape& shape) {
  Tensor out = Tensor::zeros(shape, values.dtype()), rows = real_rows(lengths, shape[0]);
  for (int64_t i = 0; i < rows.numel(); ++i) out.set(rows.i32()[i], values.at(i));
  return out;
}

}  // namespace

Seq2Seq::Seq2Seq(const Seq2SeqConfig& c, Rng& rng, Caller caller)
    : config(c),
      encoder(c.source_vocabulary, c.embedding_dim, encoder_hidden_size(c, caller), rng,
              {.padding_idx = kPad, .rnn = c.rnn}, caller),
      decoder(make_decoder(c, encoder.annotation_size, rng, caller)),
      output(c.hidden_size, c.target_vocabulary, rng, {}, caller) {}

CrossEntropy Seq2Seq::loss(const Seq2SeqBatch& batch, double label_smoothing, double weight, double baseline,
                           Caller caller) const {
  At at(caller);
  ShardOutput out = before_output(batch, label_smoothing, weight, baseline);
  Scope scope("output");
  CrossEntropy result =
      linear_cross_entropy(out.hidden, output.weight, output.bias, out.targets,
                           {.ignore_index = kPad, .label_smoothing = label_smoothing, .weight = weight});
  if (out.extra.defined()) result.loss = result.loss + out.extra;
  return result;
}

ShardOutput Seq2Seq::before_output(const Seq2SeqBatch& batch, double label_smoothing, double weight,
                                   double baseline, Caller caller) const {
  At at(caller);
  Encoded source = encoder(batch.source, batch.source_lengths);
  source.alignment = batch.alignment;
  Tensor lengths = target_lengths(batch.target_out, kPad);
  DecoderOutputs out = decoder->real_steps(batch.target_in, source, lengths);
  Tensor words = target_words(batch.target_out, lengths);
  int64_t tokens =
      std::count_if(words.i32(), words.i32() + words.numel(), [](int32_t id) { return id != kPad; });
  Var extra;
  if (out.log_probability.defined() && tokens > 0) {
    Scope scope("output");
    Tensor costs = at_steps(word_costs(output, out.readout.value(), words, label_smoothing), lengths,
                            batch.target_out.shape());
    Var choices = reinforce(out.log_probability, costs, real_words(batch.target_out), baseline) *
                  (weight / static_cast<double>(tokens));
    extra = choices - stop_gradient(choices);  // a gradient, and no value
  }
  return {out.readout, words, extra};
}

OutputLayer Seq2Seq::output_layer() const { return {output.weight, output.bias, {.ignore_index = kPad}}; }

Tensor Seq2Seq::align(const Seq2SeqBatch& batch, Caller caller) const {
  At at(caller);
  NoGrad guard;
  Encoded source = encoder(batch.source, batch.source_lengths);
  source.alignment = batch.alignment;
  return (*decoder)(batch.target_in, source).weights;
}

Tensor Seq2Seq::word_losses(const Seq2SeqBatch& batch, Caller caller) const {
  At at(caller);
  NoGrad guard;
  Encoded source = encoder(batch.source, batch.source_lengths);
  source.alignment = batch.alignment;
  Tensor lengths = target_lengths(batch.target_out, kPad);
  DecoderOutputs out = decoder->real_steps(batch.target_in, source, lengths);
  Tensor words = target_words(batch.target_out, lengths);
  Var costs =
      cross_entropy(output(out.readout), words, {.ignore_index = kPad, .reduction = Reduction::none}).loss;
  return at_steps(costs.value(), lengths, batch.target_out.shape());
}

std::unique_ptr<Generator> Seq2Seq::generator(int64_t rows) const {
  return make_generator(encoder, *decoder, output, rows);
}

void Seq2Seq::params(ParamVisitor& visit) {
  visit("encoder", encoder);
  visit("decoder", *decoder);
  visit("output", output);
}

}  // namespace gradus::nn
