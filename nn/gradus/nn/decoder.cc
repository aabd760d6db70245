#include <gradus/nn/decoder.h>

#include <gradus/nn/attention/additive.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/attention_decoder.h>
#include <gradus/ops/concat_rows.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

std::string step_name(int64_t t) { return "t" + std::to_string(t); }

void advance(const RecurrentCell& cell, const Var& input, DecoderState& state) {
  RecurrentState next = cell.step(input, {state.hidden, state.c});
  state.hidden = next.h;
  state.c = next.c;
}

Var take(const Var& x, const Tensor& rows) { return x.defined() ? gather_rows(x, rows) : x; }

// What the readout takes: of all steps [T, B, ..], or of the real ones alone [N, ..].
Var side_by_side(const std::vector<Var>& parts, const Tensor& lengths) {
  return lengths.defined() ? concat_rows(parts, real_rows(lengths, parts[0].size(0))) : concat(parts, -1);
}

// The source of all steps; weights from outside come with it.
AttentionMemory prepare(const Attention& attention, const Encoded& source) {
  Scope scope("attention");
  AttentionMemory memory = attention.prepare(source.annotations, source.mask);
  memory.given = source.alignment;
  return memory;
}

Attended attend(const Attention& attention, const Var& query, DecoderState& state) {
  Scope scope("attention");
  Attended found = attention.step(query, state.memory, state.attention);
  state.attention = std::move(found.state);
  return found;
}

std::unique_ptr<Attention> given(const char* who, std::unique_ptr<Attention> attention,
                                 const Caller& caller) {
  if (!attention) fail(caller, who, "needs an attention", "PlainDecoder has none");
  return attention;
}

}  // namespace

DecoderState DecoderState::rows(const Tensor& rows, Caller caller) const {
  At at(caller);
  DecoderState out = reordered(rows);
  if (memory.annotations.defined()) out.memory = memory.rows(rows);
  out.summary = take(summary, rows);
  return out;
}

DecoderState DecoderState::reordered(const Tensor& rows, Caller caller) const {
  At at(caller);
  DecoderState out = *this;
  out.hidden = take(hidden, rows);
  out.feed = take(feed, rows);
  out.c = take(c, rows);
  out.attention = attention.rows(rows);
  return out;
}

Readout::Readout(int64_t in_features, int64_t out_features, ReadoutKind k, Rng& rng, Caller caller)
    : linear(in_features, k == ReadoutKind::maxout ? 2 * out_features : out_features, rng, {}, caller),
      kind(k) {}

Var Readout::operator()(const Input& x) const {
  At at(x.caller());
  Var y = linear(x);
  if (kind == ReadoutKind::tanh) return tanh(y);
  std::vector<int64_t> pairs(y.shape().begin(), y.shape().end());
  pairs.back() /= 2;
  pairs.push_back(2);
  return max(reshape(y, pairs), {.axes = {-1}});
}

DecoderOutputs Decoder::operator()(const Tensor& previous, const Encoded& source, Caller caller) const {
  At at(caller);
  Scope scope("decoder");
  DecoderState state = start(source);
  std::vector<Var> readouts, weights, drawn;
  for (int64_t t = 0; t < previous.size(0); ++t) {
    Scope step_scope(step_name(t));
    DecoderStep out = step(previous.row(t), state);
    readouts.push_back(out.readout);
    if (out.weights.defined()) weights.push_back(out.weights);
    if (out.log_probability.defined()) drawn.push_back(out.log_probability);
  }
  return {stack(readouts, 0), weights.empty() ? Tensor() : stack(weights, 0).value(),
          drawn.empty() ? Var() : stack(drawn, 0)};
}

DecoderOutputs Decoder::real_steps(const Tensor& previous, const Encoded& source, const Tensor& lengths,
                                  Caller caller) const {
  At at(caller);
  DecoderOutputs out = (*this)(previous, source);
  out.readout = concat_rows({out.readout}, real_rows(lengths, previous.size(0)));
  return out;
}

Tensor target_lengths(const Tensor& ids, int32_t padding_idx, Caller caller) {
  At at(caller);
  int64_t B = ids.size(1);
  std::vector<int32_t> lengths(static_cast<size_t>(B), 0);
  for (int64_t t = 0; t < ids.size(0); ++t)
    for (int64_t b = 0; b < B; ++b)
      if (ids.i32()[t * B + b] != padding_idx) lengths[static_cast<size_t>(b)] = static_cast<int32_t>(t + 1);
  return Tensor::from_ids({B}, lengths);
}

Tensor target_words(const Tensor& ids, const Tensor& lengths, Caller caller) {
  At at(caller);
  Tensor words = real_rows(lengths, ids.size(0));
  for (int64_t i = 0; i < words.numel(); ++i) words.i32()[i] = ids.i32()[words.i32()[i]];
  return words;
}

// ---- Bahdanau ----

BahdanauDecoder::BahdanauDecoder(const DecoderSizes& s, std::unique_ptr<Attention> a, Rng& rng,
                                 const DecoderOptions& o, Caller caller)
    : embedding(s.vocabulary, s.embedding_dim, rng, {.padding_idx = o.padding_idx}, caller),
      dropout(o.dropout, caller),
      attention(given("BahdanauDecoder", std::move(a), caller)),
      cell(o.cell, s.embedding_dim + attention->context_size(s.annotation_size), s.hidden_size, rng,
           "BahdanauDecoder", caller),
      bridge(s.summary_size, s.hidden_size, rng, {}, caller),
      readout(s.hidden_size + attention->context_size(s.annotation_size) + s.embedding_dim, s.hidden_size,
              o.readout, rng, caller),
      fused(o.fused) {}

DecoderState BahdanauDecoder::start(const Encoded& source, Caller caller) const {
  At at(caller);
  DecoderState state{tanh(bridge(source.summary())), {}, prepare(*attention, source), {}};
  state.attention = attention->start(state.memory);
  return state;
}

DecoderStep BahdanauDecoder::step(const Tensor& previous, DecoderState& state, Caller caller) const {
  At at(caller);
  Var y = dropout(embedding(previous));
  Attended found = attend(*attention, state.hidden, state);
  advance(cell, concat({y, found.context}, -1), state);
  return {dropout(readout(concat({state.hidden, found.context, y}, -1))), found.weights,
          found.log_probability};
}

DecoderOutputs BahdanauDecoder::operator()(const Tensor& previous, const Encoded& source,
                                           Caller caller) const {
  At at(caller);
  return real_steps(previous, source, {});
}

DecoderOutputs BahdanauDecoder::real_steps(const Tensor& previous, const Encoded& source,
                                           const Tensor& lengths, Caller caller) const {
  At at(caller);
  const HiddenLayerAttention* additive = as_hidden_layer(*attention);
  if (!fused || !additive || additive->cuts() || !cell.type.is_plain_gru())
    return lengths.defined() ? Decoder::real_steps(previous, source, lengths)
                             : Decoder::operator()(previous, source);
  Scope scope("decoder");
  DecoderState state = start(source);
  Var y = dropout(embedding(previous));
  AttentionDecoderStates out =
      attention_decoder({y, state.hidden, state.memory.keys, state.memory.annotations, additive->query_weight(),
                         additive->scaled_v(), cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh},
                        state.memory.mask, lengths);
  return {dropout(readout(side_by_side({out.states_contexts, y}, lengths))), out.weights};
}

void BahdanauDecoder::params(ParamVisitor& visit) {
  visit("embedding", embedding);
  visit("attention", *attention);
  visit("cell", cell);
  visit("bridge", bridge);
  visit("readout", readout);
}

// ---- Luong ----

LuongDecoder::LuongDecoder(const DecoderSizes& s, std::unique_ptr<Attention> a, Rng& rng,
                           const DecoderOptions& o, Caller caller)
    : embedding(s.vocabulary, s.embedding_dim, rng, {.padding_idx = o.padding_idx}, caller),
      dropout(o.dropout, caller),
      attention(given("LuongDecoder", std::move(a), caller)),
      cell(o.cell, s.embedding_dim + (o.input_feeding ? s.hidden_size : 0), s.hidden_size, rng,
           "LuongDecoder", caller),
      bridge(s.summary_size, s.hidden_size, rng, {}, caller),
      attention_vector(attention->context_size(s.annotation_size) + s.hidden_size, s.hidden_size, o.readout,
                       rng, caller),
      input_feeding(o.input_feeding),
      fused(o.fused) {}

DecoderState LuongDecoder::start(const Encoded& source, Caller caller) const {
  At at(caller);
  Var hidden = tanh(bridge(source.summary()));
  Var feed = input_feeding ? Var(Tensor::zeros(hidden.shape(), hidden.dtype())) : Var();
  DecoderState state{hidden, feed, prepare(*attention, source), {}};
  state.attention = attention->start(state.memory);
  return state;
}

DecoderStep LuongDecoder::step(const Tensor& previous, DecoderState& state, Caller caller) const {
  At at(caller);
  Var y = dropout(embedding(previous));
  advance(cell, input_feeding ? concat({y, state.feed}, -1) : y, state);
  Attended found = attend(*attention, state.hidden, state);
  Var read = attention_vector(concat({found.context, state.hidden}, -1));
  if (input_feeding) state.feed = read;
  return {dropout(read), found.weights, found.log_probability};
}

DecoderOutputs LuongDecoder::operator()(const Tensor& previous, const Encoded& source, Caller caller) const {
  At at(caller);
  return real_steps(previous, source, {});
}

DecoderOutputs LuongDecoder::real_steps(const Tensor& previous, const Encoded& source, const Tensor& lengths,
                                       Caller caller) const {
  At at(caller);
  if (!fused || input_feeding)
    return lengths.defined() ? Decoder::real_steps(previous, source, lengths)
                             : Decoder::operator()(previous, source);
  // The cell never sees a context: all states first, then attention for all of them, then the attention vectors as one
  // product.
  Scope scope("decoder");
  DecoderState state = start(source);
  Var y = dropout(embedding(previous));
  Var hidden = cell.over_time(y, {state.hidden, state.c}, lengths);
  AttendedSequence all = [&] {
    Scope attention_scope("attention");
    return attention->sequence(hidden, state.memory);
  }();
  return {dropout(attention_vector(side_by_side({all.context, hidden}, lengths))), all.weights,
          all.log_probability};
}

void LuongDecoder::params(ParamVisitor& visit) {
  visit("embedding", embedding);
  visit("attention", *attention);
  visit("cell", cell);
  visit("bridge", bridge);
  visit("attention_vector", attention_vector);
}

// ---- without attention ----

PlainDecoder::PlainDecoder(const DecoderSizes& s, Rng& rng, const DecoderOptions& o, Caller caller)
    : embedding(s.vocabulary, s.embedding_dim, rng, {.padding_idx = o.padding_idx}, caller),
      dropout(o.dropout, caller),
      cell(o.cell, s.embedding_dim + s.annotation_size, s.hidden_size, rng, "PlainDecoder", caller),
      bridge(s.annotation_size, s.hidden_size, rng, {}, caller),
      readout(s.hidden_size + s.annotation_size + s.embedding_dim, s.hidden_size, o.readout, rng, caller),
      fused(o.fused) {}

DecoderState PlainDecoder::start(const Encoded& source, Caller caller) const {
  At at(caller);
  Var summary = source.final_states();
  return {tanh(bridge(summary)), {}, {}, summary};
}

DecoderStep PlainDecoder::step(const Tensor& previous, DecoderState& state, Caller caller) const {
  At at(caller);
  Var y = dropout(embedding(previous));
  advance(cell, concat({y, state.summary}, -1), state);
  return {dropout(readout(concat({state.hidden, state.summary, y}, -1))), {}};
}

DecoderOutputs PlainDecoder::operator()(const Tensor& previous, const Encoded& source, Caller caller) const {
  At at(caller);
  if (!fused) return Decoder::operator()(previous, source);
  Scope scope("decoder");
  DecoderState state = start(source);
  Var y = dropout(embedding(previous));
  Var summary = expand(state.summary, {previous.size(0), previous.size(1), state.summary.size(1)});
  Var hidden = cell.over_time(concat({y, summary}, -1), {state.hidden, state.c});
  return {dropout(readout(concat({hidden, summary, y}, -1))), {}};
}

void PlainDecoder::params(ParamVisitor& visit) {
  visit("embedding", embedding);
  visit("cell", cell);
  visit("bridge", bridge);
  visit("readout", readout);
}

}  // namespace gradus::nn
