#include <gradus/nn/decoder.h>

#include <gradus/nn/attention/additive.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/attention_decoder.h>
#include <gradus/ops/attention_sequence.h>
#include <gradus/ops/gru.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

std::string step_name(int64_t t) { return "t" + std::to_string(t); }

}  // namespace

DecoderOutputs Decoder::operator()(const Tensor& previous, const Encoded& source) const {
  Scope scope("decoder");
  DecoderState state = start(source);
  std::vector<Var> readouts, weights;
  for (int64_t t = 0; t < previous.size(0); ++t) {
    Scope step_scope(step_name(t));
    DecoderStep out = step(previous.row(t), state);
    readouts.push_back(out.readout);
    if (out.weights.defined()) weights.push_back(out.weights);
  }
  return {stack(readouts, 0), weights.empty() ? Tensor() : stack(weights, 0).value()};
}

// ---- Bahdanau ----

BahdanauDecoder::BahdanauDecoder(const DecoderSizes& s, std::unique_ptr<Attention> a, Rng& rng, const DecoderOptions& o)
    : embedding(s.vocabulary, s.embedding_dim, rng, {.padding_idx = o.padding_idx}),
      dropout(o.dropout),
      attention(std::move(a)),
      cell(s.embedding_dim + s.annotation_size, s.hidden_size, rng),
      bridge(s.summary_size, s.hidden_size, rng),
      readout(s.hidden_size + s.annotation_size + s.embedding_dim, s.hidden_size, rng),
      fused(o.fused) {}

DecoderState BahdanauDecoder::start(const Encoded& source) const {
  return {tanh(bridge(source.summary())), {}, attention->prepare(source.annotations, source.mask), {}};
}

DecoderStep BahdanauDecoder::step(const Tensor& previous, DecoderState& state) const {
  Var y = dropout(embedding(previous));
  AttentionStep attended = [&] {
    Scope scope("attention");
    return attention->step(state.hidden, state.memory);
  }();
  state.hidden = cell(concat({y, attended.context}, -1), state.hidden);
  return {dropout(tanh(readout(concat({state.hidden, attended.context, y}, -1)))), attended.weights};
}

DecoderOutputs BahdanauDecoder::operator()(const Tensor& previous, const Encoded& source) const {
  auto* additive = dynamic_cast<const AdditiveAttention*>(attention.get());
  if (!fused || !additive) return Decoder::operator()(previous, source);
  Scope scope("decoder");
  DecoderState state = start(source);
  Var y = dropout(embedding(previous));
  AttentionDecoderStates out = attention_decoder(
      {y, state.hidden, state.memory.keys, state.memory.annotations, additive->query.weight, additive->v,
       cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh},
      state.memory.mask);
  return {dropout(tanh(readout(concat({out.states_contexts, y}, -1)))), out.weights};
}

void BahdanauDecoder::params(ParamVisitor& visit) {
  visit("embedding", embedding);
  visit("attention", *attention);
  visit("cell", cell);
  visit("bridge", bridge);
  visit("readout", readout);
}

// ---- Luong ----

LuongDecoder::LuongDecoder(const DecoderSizes& s, std::unique_ptr<Attention> a, Rng& rng, const DecoderOptions& o)
    : embedding(s.vocabulary, s.embedding_dim, rng, {.padding_idx = o.padding_idx}),
      dropout(o.dropout),
      attention(std::move(a)),
      cell(s.embedding_dim + (o.input_feeding ? s.hidden_size : 0), s.hidden_size, rng),
      bridge(s.summary_size, s.hidden_size, rng),
      attention_vector(s.annotation_size + s.hidden_size, s.hidden_size, rng),
      input_feeding(o.input_feeding),
      fused(o.fused) {}

DecoderState LuongDecoder::start(const Encoded& source) const {
  Var hidden = tanh(bridge(source.summary()));
  Var feed = input_feeding ? Var(Tensor::zeros(hidden.shape(), hidden.dtype())) : Var();
  return {hidden, feed, attention->prepare(source.annotations, source.mask), {}};
}

DecoderStep LuongDecoder::read(const Var& hidden, const AttentionMemory& memory) const {
  Scope scope("attention");
  AttentionStep attended = attention->step(hidden, memory);
  return {tanh(attention_vector(concat({attended.context, hidden}, -1))), attended.weights};
}

DecoderStep LuongDecoder::step(const Tensor& previous, DecoderState& state) const {
  Var y = dropout(embedding(previous));
  state.hidden = cell(input_feeding ? concat({y, state.feed}, -1) : y, state.hidden);
  DecoderStep out = read(state.hidden, state.memory);
  if (input_feeding) state.feed = out.readout;
  out.readout = dropout(out.readout);
  return out;
}

DecoderOutputs LuongDecoder::operator()(const Tensor& previous, const Encoded& source) const {
  if (!fused || input_feeding) return Decoder::operator()(previous, source);
  // Without input feeding the cell never sees a context: all states first, then attention for each of them, then the
  // attention vectors as one product.
  Scope scope("decoder");
  DecoderState state = start(source);
  Var y = dropout(embedding(previous));
  Var hidden = gru(y, state.hidden, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh);
  if (attention->is_multiplicative()) {
    AttentionSequence all = multiplicative_attention_sequence(hidden, state.memory.keys, state.memory.annotations, 1,
                                                              state.memory.mask);
    return {dropout(tanh(attention_vector(concat({all.context, hidden}, -1)))), all.weights};
  }
  std::vector<Var> contexts, weights;
  for (int64_t t = 0; t < previous.size(0); ++t) {
    Scope step_scope(step_name(t) + ".attention");
    AttentionStep attended = attention->step(select(hidden, 0, t), state.memory);
    contexts.push_back(attended.context);
    weights.push_back(attended.weights);
  }
  Var readouts = tanh(attention_vector(concat({stack(contexts, 0), hidden}, -1)));
  return {dropout(readouts), stack(weights, 0).value()};
}

void LuongDecoder::params(ParamVisitor& visit) {
  visit("embedding", embedding);
  visit("attention", *attention);
  visit("cell", cell);
  visit("bridge", bridge);
  visit("attention_vector", attention_vector);
}

// ---- without attention ----

PlainDecoder::PlainDecoder(const DecoderSizes& s, Rng& rng, const DecoderOptions& o)
    : embedding(s.vocabulary, s.embedding_dim, rng, {.padding_idx = o.padding_idx}),
      dropout(o.dropout),
      cell(s.embedding_dim + s.annotation_size, s.hidden_size, rng),
      bridge(s.annotation_size, s.hidden_size, rng),
      readout(s.hidden_size + s.annotation_size + s.embedding_dim, s.hidden_size, rng),
      fused(o.fused) {}

DecoderState PlainDecoder::start(const Encoded& source) const {
  Var summary = source.final_states();
  return {tanh(bridge(summary)), {}, {}, summary};
}

DecoderStep PlainDecoder::step(const Tensor& previous, DecoderState& state) const {
  Var y = dropout(embedding(previous));
  state.hidden = cell(concat({y, state.summary}, -1), state.hidden);
  return {dropout(tanh(readout(concat({state.hidden, state.summary, y}, -1)))), {}};
}

DecoderOutputs PlainDecoder::operator()(const Tensor& previous, const Encoded& source) const {
  if (!fused) return Decoder::operator()(previous, source);
  Scope scope("decoder");
  DecoderState state = start(source);
  Var y = dropout(embedding(previous));
  Var summary = expand(state.summary, {previous.size(0), previous.size(1), state.summary.size(1)});
  Var hidden = gru(concat({y, summary}, -1), state.hidden, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh);
  return {dropout(tanh(readout(concat({hidden, summary, y}, -1)))), {}};
}

void PlainDecoder::params(ParamVisitor& visit) {
  visit("embedding", embedding);
  visit("cell", cell);
  visit("bridge", bridge);
  visit("readout", readout);
}

}  // namespace gradus::nn
