#include <gradus/nn/seq2seq.h>

#include <cmath>

#include <gradus/nn/attention/guided.h>
#include <gradus/nn/attention/hard.h>
#include <gradus/nn/init.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/operands.h>

namespace gradus::nn {
namespace {

// Where states are compared with annotations directly, both directions together must have the decoder's size.
int64_t encoder_hidden_size(const Seq2SeqConfig& c, const Caller& caller) {
  At at(caller);
  bool halves = c.bidirectional() && c.attention != "none" && attention_kind(c.attention).equal_sizes;
  return halves ? c.hidden_size / 2 : c.hidden_size;
}

ReadoutKind readout_kind(const std::string& name) {
  if (name == "tanh") return ReadoutKind::tanh;
  if (name == "maxout") return ReadoutKind::maxout;
  unknown_name("Seq2Seq", "readout", name, {"tanh", "maxout"});
}

Order order_of(const Seq2SeqConfig& c) {
  const bool attends = c.attention != "none";  // without attention there is one order
  if (c.decoder == "auto")
    return attends && attention_kind(c.attention).luong_order ? Order::after_cell : Order::before_cell;
  if (c.decoder == "bahdanau") return Order::before_cell;
  if (c.decoder == "luong") return attends ? Order::after_cell : Order::before_cell;
  unknown_name("Seq2Seq", "decoder", c.decoder, {"auto", "bahdanau", "luong"});
}

std::unique_ptr<Decoder> make_decoder(const Seq2SeqConfig& c, int64_t annotation_size, const RngInput& rng) {
  At at(rng.caller());
  DecoderSizes sizes{c.target_vocabulary, c.embedding_dim, c.hidden_size, annotation_size,
                     encoder_hidden_size(c, rng.caller())};
  DecoderOptions options{.dropout = c.rnn.dropout,
                         .num_layers = c.decoder_layers,
                         .residual = c.rnn.residual,
                         .padding_idx = kPad,
                         .order = order_of(c),
                         .input_feeding = c.input_feeding,
                         .readout = readout_kind(c.readout),
                         .cell = c.rnn.cell};
  AttentionSizes attended{c.hidden_size, annotation_size, c.attention_size ? c.attention_size : c.hidden_size,
                          c.attention_options};
  std::unique_ptr<Attention> attention;
  if (c.attention != "none") attention = make_attention(c.attention, attended, rng);
  return std::make_unique<RecurrentDecoder>(sizes, std::move(attention), rng, options);
}

Tensor real_words(const Tensor& targets) {
  Tensor real(targets.shape(), DType::u8);
  for (int64_t i = 0; i < targets.numel(); ++i) real.u8()[i] = targets.i32()[i] != kPad;
  return real;
}

}  // namespace

Seq2Seq::Seq2Seq(const Seq2SeqConfig& c, const RngInput& rng)
    : config(c),
      encoder(c.source_vocabulary, c.embedding_dim, encoder_hidden_size(c, rng.caller()), rng,
              {.padding_idx = kPad, .rnn = c.rnn}),
      decoder(make_decoder(c, encoder.annotation_size, rng)),
      output(c.hidden_size, c.target_vocabulary, rng, {}) {
  At at(rng.caller());
  must_be_positive("Seq2Seq", "embedding_deviation", c.embedding_deviation);
  Parameter words = as_recurrent(*decoder)->embedding.weight.tied();
  if (c.tie_embeddings) {
    if (c.embedding_dim != c.hidden_size)
      refuse("Seq2Seq", "tied embeddings have the size of the states: embedding_dim {}, hidden_size {}",
             c.embedding_dim, c.hidden_size);
    init::normal_(words, 0, 1 / std::sqrt(static_cast<double>(c.embedding_dim)), rng);
    words.update([](const Tensor& t) { t.row(kPad).fill(0); });
    output.weight = words.tied();
  } else {
    words.assign(scaled(words.value(), c.embedding_deviation));
  }
  if (c.tie_source) {
    must_share_words("Seq2Seq", c.source_vocabulary, c.target_vocabulary);
    encoder.embedding.weight = words.tied();
  } else {
    Parameter& own = encoder.embedding.weight;
    own.assign(scaled(own.value(), c.embedding_deviation));
  }
}

ShardOutput Seq2Seq::hidden_states(const Seq2SeqBatch& batch, const LossOptions& options) const {
  Encoded source = encoder(batch.source, batch.source_lengths);
  source.alignment = batch.alignment;
  Tensor lengths = target_lengths(batch.target_out, kPad);
  const bool guided = options.guided_alignment > 0 && batch.alignment.defined();
  DecoderOutputs out =
      decoder->teacher_forced(batch.target_in, source, {.lengths = lengths, .queries = guided});
  ShardOutput states{out.readout, target_words(batch.target_out, lengths)};
  if (out.log_probability.defined() && states.targets.numel() > 0) {
    Scope scope("output");
    Tensor costs = word_costs(states, batch.target_out, options.label_smoothing);
    states.extra = reinforce_term(out.log_probability, costs, real_words(batch.target_out), options.baseline,
                                  options.weight);
  }
  const RecurrentDecoder* own = as_recurrent(*decoder);
  if (guided && own && own->attention && states.targets.numel() > 0) {
    Scope scope("guided_alignment");
    const AttentionMemory memory = own->attention->prepare(source.annotations, source.mask);
    states.extra = guided_alignment(*own->attention, out.query, memory, batch.alignment, lengths) *
                   (options.guided_alignment * options.weight);
  }
  return states;
}

OutputLayer Seq2Seq::output_layer() const { return {output.weight, output.bias, {.ignore_index = kPad}}; }

Tensor Seq2Seq::align(const Seq2SeqBatch& batch) const {
  NoGrad guard;
  Encoded source = encoder(batch.source, batch.source_lengths);
  source.alignment = batch.alignment;
  return decoder->teacher_forced(batch.target_in, source).weights;
}

std::unique_ptr<Generator> Seq2Seq::generator(const GeneratorOptions& options) const {
  return make_generator(encoder, *decoder, output, options);
}

}  // namespace gradus::nn
