#include <gradus/nn/attention/attention.h>
#include <gradus/nn/init.h>
#include <gradus/nn/packed/transformer.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/shape.h>

#include <cmath>

namespace gradus::nn {
namespace {

TransformerOptions layer_options(const TransformerConfig& c) {
  return {.dim_feedforward = c.dim_feedforward ? c.dim_feedforward : 4 * c.d_model,
          .dropout = c.dropout,
          .activation = c.activation,
          .norm_first = c.norm_first,
          .temperature = c.temperature};
}

// Words [T, B] as vectors of length about 1 in each entry, so that positions do not drown them.
Var embed(const Embedding& words, const Positions* positions, const Dropout& dropout, const Tensor& ids,
          int64_t first) {
  Var x = words(ids) * std::sqrt(static_cast<double>(words.weight.shape()[1]));
  return dropout(positions ? (*positions)(x, first) : x);
}

}  // namespace

TransformerSeq2Seq::TransformerSeq2Seq(const TransformerConfig& c, const RngInput& rng)
    : config(c),
      source_embedding(c.source_vocabulary, c.d_model, rng, {.padding_idx = kPad}),
      target_embedding(c.target_vocabulary, c.d_model, rng, {.padding_idx = kPad}),
      source_positions(make_positions(c.positions, c.max_positions, c.d_model, rng)),
      target_positions(make_positions(c.positions, c.max_positions, c.d_model, rng)),
      dropout(c.dropout, rng.caller()),
      encoder(c.num_layers, c.d_model, c.num_heads, rng, layer_options(c)),
      decoder(c.num_layers, c.d_model, c.num_heads, rng, layer_options(c)) {
  At at(rng.caller());
  double deviation = 1 / std::sqrt(static_cast<double>(c.d_model));
  for (Embedding* words : {&source_embedding, &target_embedding}) {
    init::normal_(words->weight, 0, deviation, rng);
    words->weight.update([](const Tensor& t) { t.row(kPad).fill(0); });
  }
  for (const ParameterList& layers : {ParameterList(encoder), ParameterList(decoder)})
    for (const NamedParameter& p : layers)
      if (p.parameter->shape().dims() == 2) init::xavier_uniform_(*p.parameter, rng);
  if (c.tie_source) must_share_words("TransformerSeq2Seq", c.source_vocabulary, c.target_vocabulary);
  if (c.tie_source) source_embedding.weight = target_embedding.weight.tied();
  output_weight =
      c.tie_embeddings
          ? target_embedding.weight.tied()
          : Parameter(Tensor::normal({c.target_vocabulary, c.d_model}, 0, deviation, rng), "output.weight");
  output_bias = Parameter(Tensor::zeros({c.target_vocabulary}), "output.bias");
}

Var TransformerSeq2Seq::encode(const Tensor& ids, const Tensor& mask) const {
  return encoder(embed(source_embedding, source_positions.get(), dropout, ids, 0), mask);
}

Var TransformerSeq2Seq::embed_target(const Tensor& ids, int64_t first) const {
  return embed(target_embedding, target_positions.get(), dropout, ids, first);
}

ShardOutput TransformerSeq2Seq::hidden_states(const Seq2SeqBatch& batch, const LossOptions&) const {
  Tensor mask = length_mask(batch.source_lengths, batch.source.size(0));
  Var memory = encode(batch.source, mask);
  Var hidden =
      decoder(embed_target(batch.target_in), memory, {.memory_mask = mask, .causal = config.causal}).output;
  int64_t rows = batch.target_out.numel();
  return {reshape(hidden, {rows, config.d_model}), batch.target_out.reshape({rows})};
}

OutputLayer TransformerSeq2Seq::output_layer() const {
  return {output_weight, output_bias, {.ignore_index = kPad}};
}

Tensor TransformerSeq2Seq::align(const Seq2SeqBatch& batch) const {
  NoGrad guard;
  Tensor mask = length_mask(batch.source_lengths, batch.source.size(0));
  return decoder(embed_target(batch.target_in), encode(batch.source, mask),
                 {.memory_mask = mask, .weights = true, .causal = config.causal})
      .weights;
}

// ---- word by word ----

namespace {

// Keys and values of what is known stay, by row: those of the source, and those of the target.
class CachedDecoder : public IncrementalDecoder {
 public:
  CachedDecoder(const TransformerSeq2Seq& model, const Tensor& source, const Tensor& lengths,
                const IncrementalOptions& options)
      : model_(model),
        weights_wanted_(options.weights),
        source_{.annotations = {}, .keys = {}, .mask = visible(lengths, source.size(0), options.hidden)},
        sentences_(source.size(1), options.rows_per_sentence) {
    NoGrad guard;
    caches_ = model.decoder.start(model.encode(source, length_mask(lengths, source.size(0))));
    for (const TransformerLayerCache& cache : caches_) source_.extra.push_back(cache.memory);
  }

  const Tensor& step(const Tensor& previous) override {
    NoGrad guard;
    logits_ =
        linear(output_of(previous), model_.output_weight, model_.output_bias).value().row(0).to(DType::f32);
    return logits_;
  }

  Tensor readouts(const Tensor& previous) override {
    NoGrad guard;
    return output_of(previous).value().row(0).to(DType::f32);
  }

  const Tensor& weights() const override { return weights_; }

  void select(const std::vector<int64_t>& rows) override {
    RowSentences::Change change = sentences_.select(rows);
    if (change == RowSentences::Change::none) return;
    for (TransformerLayerCache& cache : caches_) cache.words.select(rows);
    if (change == RowSentences::Change::rows) return;
    source_ = source_.rows(index_of(rows));
    for (size_t i = 0; i < caches_.size(); ++i) caches_[i].memory = source_.extra[i].value();
  }

 private:
  // [1, R, E]
  Var output_of(const Tensor& previous) {
    Var x = model_.embed_target(previous.reshape({1, previous.size(0)}), position_++);
    TransformerDecoderOutput out =
        model_.decoder.step(x, caches_, {.memory_mask = source_.mask, .weights = weights_wanted_});
    weights_ = out.weights.defined() ? out.weights.row(0).to(DType::f32) : Tensor();
    return out.output;
  }

  const TransformerSeq2Seq& model_;
  bool weights_wanted_;
  AttentionMemory source_;  // of the rows: the mask, and what each layer has in `extra`
  std::vector<TransformerLayerCache> caches_;
  RowSentences sentences_;
  int64_t position_ = 0;
  Tensor logits_, weights_;
};

}  // namespace

std::unique_ptr<Generator> TransformerSeq2Seq::composed_generator() const {
  auto start = [this](const Tensor& source, const Tensor& lengths, const IncrementalOptions& o) {
    return std::make_unique<CachedDecoder>(*this, source, lengths, o);
  };
  return std::make_unique<Generator>(start);
}

std::unique_ptr<Generator> TransformerSeq2Seq::generator(const GeneratorOptions& options) const {
  using namespace packed;
  if (!TransformerWeights::fits(*this)) return composed_generator();
  auto lay_out = [this](const Layout& layout) { return TransformerWeights(*this, layout); };
  auto all = std::make_shared<LaidOut<TransformerWeights>>(options.int8, lay_out);
  std::shared_ptr<const Generator> plain = composed_generator();
  auto start = [=, this](const Tensor& source, const Tensor& lengths, const IncrementalOptions& o) {
    if (!o.hidden.empty()) return plain->start(source, lengths, o);
    return std::unique_ptr<IncrementalDecoder>(
        new PackedTransformer(*this, all->for_search(source, o), source, lengths, o));
  };
  return std::make_unique<Generator>(start);
}

}  // namespace gradus::nn
