#include <gradus/nn/decoder.h>

#include <gradus/nn/attention/formed.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention_decoder.h>
#include <gradus/ops/concat_rows.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

Var take(const Var& x, const Tensor& rows) { return x.defined() ? gather_rows(x, rows) : x; }

// [T, B, R] -> [N, R], without padding, where lengths are given.
Var packed(const Var& readouts, const Tensor& lengths) {
  return lengths.defined() ? concat_rows({readouts}, real_rows(lengths, readouts.size(0))) : readouts;
}

Attended attend(const Attention& attention, const Var& query, DecoderState& state) {
  Scope scope("attention");
  Attended found = attention.step(query, state.memory, state.attention);
  state.attention = std::move(found.state);
  return found;
}

// The attention that is one op with the cell over a whole target: an additive form before a plain GRU, or null.
const FormedAttention* in_one_op(const RecurrentDecoder& d) {
  if (!d.attention || d.order != Order::before_cell || !d.cell.type.is_plain_gru()) return nullptr;
  const FormedAttention* formed = as_formed(*d.attention);
  if (!formed || formed->cuts()) return nullptr;
  ScoreForm form = formed->form();
  return form.kind == ScoreForm::Kind::additive && form.query.defined() ? formed : nullptr;
}

}  // namespace

DecoderState DecoderState::rows(const Tensor& rows) const {
  DecoderState out = reordered(rows);
  if (memory.annotations.defined()) out.memory = memory.rows(rows);
  out.summary = take(summary, rows);
  return out;
}

DecoderState DecoderState::reordered(const Tensor& rows) const {
  DecoderState out = *this;
  out.hidden = take(hidden, rows);
  out.feed = take(feed, rows);
  out.c = take(c, rows);
  for (RecurrentState& layer : out.above) layer = {take(layer.h, rows), take(layer.c, rows)};
  out.attention = attention.rows(rows);
  return out;
}

Readout::Readout(int64_t in_features, int64_t out_features, ReadoutKind k, const RngInput& rng)
    : linear(in_features, k == ReadoutKind::maxout ? 2 * out_features : out_features, rng, {}), kind(k) {}

Var Readout::operator()(const Input& x) const {
  At at(x.caller());
  Var y = linear(x);
  if (kind == ReadoutKind::tanh) return tanh(y);
  std::vector<int64_t> pairs(y.shape().begin(), y.shape().end());
  pairs.back() /= 2;
  pairs.push_back(2);
  return max(reshape(y, pairs), {.axes = {-1}});
}

DecoderOutputs Decoder::teacher_forced(const Tensor& previous, const Encoded& source,
                                       const TeacherForcing& options) const {
  Scope scope("decoder");
  DecoderState state = start(source);
  std::vector<Var> readouts, weights, drawn, queries;
  for (int64_t t = 0; t < previous.size(0); ++t) {
    Scope step_scope("t" + std::to_string(t));
    DecoderStep out = step(previous.row(t), state);
    readouts.push_back(out.readout);
    if (out.weights.defined()) weights.push_back(out.weights);
    if (out.log_probability.defined()) drawn.push_back(out.log_probability);
    if (options.queries && out.query.defined()) queries.push_back(out.query);
  }
  return {packed(stack(readouts, 0), options.lengths), weights.empty() ? Tensor() : stack(weights, 0).value(),
          drawn.empty() ? Var() : stack(drawn, 0), queries.empty() ? Var() : stack(queries, 0)};
}

Tensor target_lengths(const Tensor& ids, int32_t padding_idx) {
  int64_t B = ids.size(1);
  std::vector<int32_t> lengths(static_cast<size_t>(B), 0);
  for (int64_t t = 0; t < ids.size(0); ++t)
    for (int64_t b = 0; b < B; ++b)
      if (ids.i32()[t * B + b] != padding_idx) lengths[static_cast<size_t>(b)] = static_cast<int32_t>(t + 1);
  return Tensor::from_ids({B}, lengths);
}

Tensor target_words(const Tensor& ids, const Tensor& lengths) {
  Tensor words = real_rows(lengths, ids.size(0));
  for (int64_t i = 0; i < words.numel(); ++i) words.i32()[i] = ids.i32()[words.i32()[i]];
  return words;
}

RecurrentDecoder::RecurrentDecoder(const DecoderSizes& s, std::unique_ptr<Attention> a, const RngInput& rng,
                                   const DecoderOptions& o)
    : order(o.order),
      input_feeding(o.input_feeding && order == Order::after_cell),
      fused(o.fused),
      embedding(s.vocabulary, s.embedding_dim, rng, {.padding_idx = o.padding_idx}),
      dropout(o.dropout, rng.caller()),
      attention(std::move(a)),
      context_size(attention ? attention->context_size(s.annotation_size) : s.annotation_size),
      cell(o.cell,
           s.embedding_dim + (order == Order::before_cell ? context_size
                              : input_feeding             ? s.hidden_size
                                                          : 0),
           s.hidden_size, rng, "RecurrentDecoder"),
      residual(o.residual),
      bridge(attention ? s.summary_size : s.annotation_size, s.hidden_size, rng, {}),
      readout(s.hidden_size + context_size + (order == Order::before_cell ? s.embedding_dim : 0),
              s.hidden_size, o.readout, rng) {
  if (!attention && order == Order::after_cell)
    fail(rng.caller(), "RecurrentDecoder", "order after_cell needs an attention",
         "before_cell goes without one");
  must_be_positive("RecurrentDecoder", "num_layers", o.num_layers, kMostLayers);
  for (int64_t layer = 1; layer < o.num_layers; ++layer)
    above.emplace_back(o.cell, s.hidden_size, s.hidden_size, rng, "RecurrentDecoder");
}

DecoderState RecurrentDecoder::start(const Encoded& source) const {
  const Var summary = attention ? source.summary() : source.final_states();
  DecoderState state{tanh(bridge(summary)), {}, {}, attention ? Var() : summary};
  state.above.assign(above.size(), {state.hidden, {}});
  if (!attention) return state;
  if (input_feeding) state.feed = Tensor::zeros(state.hidden.shape(), state.hidden.dtype());
  {
    Scope scope("attention");
    state.memory = attention->prepare(source.annotations, source.mask);
  }
  state.memory.given = source.alignment;  // weights from outside come with the source
  state.attention = attention->start(state.memory);
  return state;
}

Var RecurrentDecoder::cell_input(const Input& word, const Var& context, const Var& feed) const {
  At at(word.caller());
  const Var& beside = order == Order::before_cell ? context : feed;
  return beside.defined() ? concat({word, beside}, -1) : word.var();
}

Var RecurrentDecoder::readout_input(const Input& state, const Var& context, const Var& word,
                                    const Tensor& lengths) const {
  At at(state.caller());
  std::vector<Var> parts = {context, state};
  if (order == Order::before_cell) parts = {state, context, word};
  if (!context.defined()) parts = {state, word};
  return lengths.defined() ? concat_rows(parts, real_rows(lengths, state.size(0))) : concat(parts, -1);
}

InputColumns RecurrentDecoder::cell_columns() const {
  const Parameter& w = cell.weight_ih;
  if (order == Order::after_cell) return {.word = w};
  int64_t E = embedding.weight.shape()[1];
  return {.word = WeightPart::of_columns(w, 0, E),
          .context = WeightPart::of_columns(w, E, E + context_size)};
}

InputColumns RecurrentDecoder::readout_columns() const {
  const Parameter& w = readout.linear.weight;
  int64_t H = cell.hidden_size(), C = context_size;
  if (order == Order::after_cell)
    return {.context = WeightPart::of_columns(w, 0, C), .state = WeightPart::of_columns(w, C, C + H)};
  return {.word = WeightPart::of_columns(w, H + C, w.shape()[1]),
          .context = WeightPart::of_columns(w, H, H + C),
          .state = WeightPart::of_columns(w, 0, H)};
}

Var RecurrentDecoder::climb(Var x, std::vector<RecurrentState>& states) const {
  for (size_t k = 0; k < above.size(); ++k) {
    Scope scope("above." + std::to_string(k));
    Var in = dropout(x);
    Var out =
        x.dims() == 2 ? (states[k] = above[k].step(in, states[k])).h : above[k].over_time(in, states[k]);
    x = residual ? out + x : out;
  }
  return x;
}

DecoderStep RecurrentDecoder::step(const Tensor& previous, DecoderState& state) const {
  Var y = dropout(embedding(previous));
  Attended found{.context = state.summary, .weights = {}};
  Var query = state.hidden;
  if (attention && order == Order::before_cell) found = attend(*attention, state.hidden, state);
  RecurrentState next = cell.step(cell_input(y, found.context, state.feed), {state.hidden, state.c});
  state.hidden = next.h;
  state.c = next.c;
  Var highest = climb(state.hidden, state.above);
  if (attention && order == Order::after_cell) found = attend(*attention, query = highest, state);
  Var read = readout(readout_input(highest, found.context, y));
  if (input_feeding) state.feed = read;
  return {dropout(read), found.weights, found.log_probability, query};
}

DecoderOutputs RecurrentDecoder::teacher_forced(const Tensor& previous, const Encoded& source,
                                                const TeacherForcing& options) const {
  const Tensor& lengths = options.lengths;
  const FormedAttention* additive = in_one_op(*this);
  bool states_first = !attention || (order == Order::after_cell && !input_feeding);
  if (!fused || !(additive || states_first)) return Decoder::teacher_forced(previous, source, options);

  Scope scope("decoder");
  DecoderState state = start(source);
  Var y = dropout(embedding(previous));
  if (additive) {
    ScoreForm form = additive->tempered_form();
    const AttentionMemory& memory = state.memory;
    AttentionDecoderStates out =
        attention_decoder({y, state.hidden, memory.keys, memory.annotations, form.query.var(), form.v,
                           cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh},
                          memory.mask, lengths);
    const int64_t H = cell.hidden_size(), B = previous.size(1);
    Var query;
    if (options.queries)  // s_{t-1}
      query = slice(concat({reshape(state.hidden, {1, B, H}), slice(out.states_contexts, 2, 0, H)}, 0), 0, 0,
                    previous.size(0));
    if (above.empty())
      return {dropout(readout(readout_input(out.states_contexts, {}, y, lengths))), out.weights, {}, query};
    Var highest = climb(slice(out.states_contexts, 2, 0, H), state.above),
        context = slice(out.states_contexts, 2, H, H + context_size);
    return {dropout(readout(readout_input(highest, context, y, lengths))), out.weights, {}, query};
  }
  if (!attention) {
    Var summary = expand(state.summary, {previous.size(0), previous.size(1), context_size});
    Var hidden = climb(cell.over_time(cell_input(y, summary, {}), {state.hidden, state.c}), state.above);
    return {packed(dropout(readout(readout_input(hidden, summary, y))), lengths), {}};
  }
  // The cell never sees a context: all states, then attention for all, then the readouts as one product.
  Var hidden = climb(cell.over_time(cell_input(y, {}, {}), {state.hidden, state.c}, lengths), state.above);
  AttendedSequence all = [&] {
    Scope attention_scope("attention");
    return attention->sequence(hidden, state.memory);
  }();
  return {dropout(readout(readout_input(hidden, all.context, y, lengths))), all.weights, all.log_probability,
          hidden};
}

void RecurrentDecoder::params(ParamVisitor& visit) {
  visit("embedding", embedding);
  visit("attention", attention);
  visit("cell", cell);
  visit("above", above);
  visit("bridge", bridge);
  visit(order == Order::before_cell ? "readout" : "attention_vector", readout);
}

// A decoder of one's own may stand in a model too, and is then stepped through its interface.
const RecurrentDecoder* as_recurrent(const Decoder& decoder) {
  return dynamic_cast<const RecurrentDecoder*>(&decoder);
}

}  // namespace gradus::nn
