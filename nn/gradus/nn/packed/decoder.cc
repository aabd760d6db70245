#include <gradus/nn/packed/decoder.h>

#include <algorithm>

#include <gradus/kernels/attention.h>
#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/inference.h>

namespace gradus::nn {
namespace packed {
namespace {

// The sizes that a step takes for granted; where they do not fit, the composed way says what is wrong.
bool fits_sizes(const ScoreForm& f, int64_t H, int64_t D) {
  int64_t A = f.query.defined() ? f.query.rows() : H;
  if (f.query.defined() && f.query.columns() != H) return false;
  if (f.key.defined() ? f.key.rows() != A || f.key.columns() != D : D != A) return false;
  return f.kind == ScoreForm::Kind::dot || f.v.numel() == A;
}

// What a search needs of a model.
struct Weights {
  PackedEncoder encoder;
  DecoderWeights decoder;
};

bool is_f32(const Parameter& p) { return p.value().dtype() == DType::f32; }

Tensor gathered(const Matrix& m, const Tensor& x, Team& team) {
  Tensor out({x.size(0), m.rows()}, DType::f32);
  team.run([&](int member) { m.product(x.size(0), x.f32(), x.size(1), out.f32(), member, team.size()); });
  return out;
}

// Row i of x becomes what row rows[i] was, from column `column` on; `spare` is as large as x.
void reorder(Tensor& x, Tensor& spare, const std::vector<int64_t>& rows, int64_t column) {
  int64_t stride = x.size(1);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(x.f32() + rows[i] * stride + column, stride - column,
                spare.f32() + static_cast<int64_t>(i) * stride + column);
  std::swap(x, spare);
}

}  // namespace

bool DecoderWeights::fits(const Decoder& decoder, const Linear& output) {
  const RecurrentDecoder* d = as_recurrent(decoder);
  if (!d || !d->above.empty() || !d->cell.type.is_packed_gru() || !is_f32(d->cell.weight_hh) ||
      !is_f32(output.weight) || !is_f32(d->embedding.weight))
    return false;
  NoGrad guard;
  const FormedAttention* formed = d->attention ? as_formed(*d->attention) : nullptr;
  return !formed || fits_sizes(formed->tempered_form(), d->cell.hidden_size(), d->context_size);
}

DecoderWeights::DecoderWeights(const RecurrentDecoder& d, const Linear& output_layer, const Layout& layout) {
  E = d.embedding.weight.shape()[1];
  H = d.cell.hidden_size();
  WeightPart query_weight, key_weight;
  if (d.attention) {
    NoGrad guard;
    const FormedAttention* formed = as_formed(*d.attention);
    if (formed && !formed->cuts()) {
      form = formed->tempered_form();
      query_weight = form->query;
      key_weight = form->key;
      A = query_weight.defined() ? query_weight.rows() : H;
    } else {
      own = d.attention.get();
    }
  }
  context_first = d.order == Order::before_cell;
  feed = d.input_feeding;
  embedding = &d.embedding;
  norm_ih = GateNorm(d.cell, GateNorm::inputs);
  norm_hh = GateNorm(d.cell, GateNorm::states);
  b_ih = numbers(d.cell.bias_ih);
  b_hh = numbers(d.cell.bias_hh);
  readout_bias = numbers(d.readout.linear.bias);
  maxout = d.readout.kind == ReadoutKind::maxout;
  const InputColumns of_cell = d.cell_columns(), of_readout = d.readout_columns();
  input = Matrix({of_cell.word, of_readout.word}, layout);
  value = Matrix({of_cell.context, of_readout.context}, layout);
  state = Matrix({d.cell.weight_hh, query_weight, of_readout.state}, layout);
  key = Matrix({key_weight}, layout);
  bridge = Matrix({d.bridge.weight}, layout, numbers(d.bridge.bias));
  out = Matrix({output_layer.weight}, layout.of_output(), numbers(output_layer.bias));
  context = value.rows();
  readout_at = state.rows() - d.readout.linear.weight.shape()[0];
}

PackedDecoder::PackedDecoder(std::shared_ptr<const DecoderWeights> weights, const Annotations& source,
                             const IncrementalOptions& options)
    : PackedSteps(weights->out, source.forward_final.size(0) * options.rows_per_sentence, options.pool),
      w_(std::move(weights)),
      sentences_(source.forward_final.size(0), options.rows_per_sentence) {
  const DecoderWeights& w = *w_;
  const int64_t B = source.forward_final.size(0);
  auto rows_of = [&](int64_t n) { return Tensor({most_, n}, DType::f32); };

  // Without attention all final states stand where the one annotation would.
  const bool attends = w.form || w.own, additive = w.form && w.form->kind == ScoreForm::Kind::additive;
  Tensor summary = (attends ? source.summary() : source.final_states()).value();
  Tensor annotations = attends ? source.annotations.value() : summary;
  Tensor keys, values, exp_keys;
  if (w.form) keys = w.key.defined() ? gathered(w.key, annotations, team_) : annotations;
  if (!w.own) values = gathered(w.value, annotations, team_);
  if (additive) exp_keys = Tensor(keys.shape(), DType::f32);
  if (additive) exp_query_ = rows_of(w.A);
  NoGrad guard;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t begin = attends ? source.begin[b] : b, end = attends ? source.begin[b + 1] : b + 1;
    auto own = [&](const Tensor& of_all) { return of_all.defined() ? of_all.rows(begin, end) : of_all; };
    Source s{source.begin[b + 1] - source.begin[b], own(keys), own(values), own(exp_keys)};
    if (additive) s.by_exp = kernels::exp_of_double(s.keys.numel(), s.keys.f32(), s.exp_keys.f32());
    S_ = std::max(S_, s.words);
    if (w.own) {
      // By itself, so that no neighbour changes a bit. A source of no words has one that is not real.
      const Tensor x = s.words > 0 ? own(annotations) : Tensor::zeros({1, annotations.size(1)});
      s.memory = w.own->prepare(Var(x.reshape({x.size(0), 1, x.size(1)})),
                                s.words > 0 ? Tensor() : Tensor::zeros({1, 1}, DType::u8));
      looked_.push_back(w.own->start(s.memory));
    }
    sources_.push_back(std::move(s));
  }
  faults_.resize(static_cast<size_t>(team_.size()));

  int64_t input = w.E + (w.feed ? w.H : 0);
  input_ = rows_of(input);
  of_input_ = rows_of(w.input.rows());
  state_ = rows_of(w.H);
  of_state_ = rows_of(w.state.rows());
  if (w.feed) input_spare_ = rows_of(input);
  state_spare_ = rows_of(w.H);
  of_state_spare_ = rows_of(w.state.rows());
  context_ = rows_of(w.context);
  readout_ = rows_of(w.H);
  if (attends) alignment_ = rows_of(S_);
  if (w.own) found_ = rows_of(w.value.columns());

  // s_0 = tanh(W_b summary + b), and what the first step needs of it.
  w.bridge.product(B, summary.f32(), summary.size(1), state_.f32());
  kernels::tanh(state_.f32(), state_.f32(), B * w.H);
  w.state.product(B, state_.f32(), w.H, of_state_.f32());
  w.norm_hh(B, of_state_.f32(), w.state.rows());
  if (w.feed)
    for (int64_t b = 0; b < B; ++b) std::fill_n(input_.f32() + b * input + w.E, w.H, 0.0f);
  set_rows(B);
}

Tensor PackedDecoder::run(const Tensor& previous) {
  look_up(*w_->embedding, previous.i32(), R_, input_.f32(), input_.size(1));
  team_.run(job_);
  for (std::exception_ptr& fault : faults_)
    if (fault) std::rethrow_exception(std::exchange(fault, nullptr));
  return readout_.rows(0, R_);
}

// Context and weights of some rows. The kernel takes one query at a time: rows of a beam share keys.
void PackedDecoder::attend(const Share& rows) {
  const DecoderWeights& w = *w_;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const Source& source = source_of(r);
    float* context = context_.f32() + r * w.context;
    const float* values = source.values.f32();
    if (!w.form) {
      std::copy_n(values, w.context, context);
      continue;
    }
    const int64_t S = source.words;
    float* alignment = alignment_.f32() + r * S_;
    const float* keys = source.keys.f32();
    const float* query =
        w.form->query.defined() ? of_state_.f32() + r * w.state.rows() + 3 * w.H : state_.f32() + r * w.H;
    if (w.form->kind == ScoreForm::Kind::dot) {
      kernels::multiplicative_attention(S, 1, w.A, w.context, keys, values, query,
                                        static_cast<float>(w.form->scale), nullptr, alignment, context,
                                        w.context);
    } else {
      const float* v = w.form->v.value().f32();
      float* exp_query = exp_query_.f32() + r * w.A;
      if (source.by_exp && kernels::exp_of_double(w.A, query, exp_query))
        kernels::additive_attention_of_exp(S, w.A, w.context, source.exp_keys.f32(), values, exp_query, v,
                                           alignment, context);
      else
        kernels::additive_attention(S, 1, w.A, w.context, keys, values, query, v, nullptr, alignment, context,
                                    w.context);
    }
    std::fill(alignment + S, alignment + S_, 0.0f);
  }
}

// Contexts and weights of some rows by the attention's own steps. What it throws waits for the other members.
void PackedDecoder::look(const Share& rows) {
  NoGrad guard;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    AttentionState& state = looked_[static_cast<size_t>(r)];
    const Source& source = source_of(r);
    Attended found = w_->own->step(Var(state_.rows(r, r + 1).clone()), source.memory, state);
    state = found.state;
    found_.rows(r, r + 1).copy_from(found.context.value());
    float* alignment = std::copy_n(found.weights.f32(), source.words, alignment_.f32() + r * S_);
    std::fill(alignment, alignment_.f32() + (r + 1) * S_, 0.0f);
  }
}

// The readout from its shares: the state's, the context's, the word's (not in Luong's order).
void PackedDecoder::read_out(const Share& rows) {
  const DecoderWeights& w = *w_;
  const int64_t H = w.H, in_context = w.context_first ? 3 * H : 0, of_input = w.input.rows();
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* state = of_state_.f32() + r * w.state.rows() + w.readout_at;
    const float* context = context_.f32() + r * w.context + in_context;
    const float* word = w.context_first ? of_input_.f32() + r * of_input + 3 * H : nullptr;
    float* out = readout_.f32() + r * H;
    if (!w.maxout) {
      kernels::tanh_of_sum(H, state, context, word, w.readout_bias, out);
    } else {
      auto at = [&](int64_t i) {
        return state[i] + context[i] + (word ? word[i] : 0.0f) + w.readout_bias[i];
      };
      for (int64_t k = 0; k < H; ++k) out[k] = std::max(at(2 * k), at(2 * k + 1));
    }
    if (w.feed) std::copy_n(out, H, input_.f32() + r * input_.size(1) + w.E);
  }
}

void PackedDecoder::run_step(int member) {
  const DecoderWeights& w = *w_;
  const int members = team_.size();
  const int64_t H = w.H, R = R_, of_input = w.input.rows(), of_state = w.state.rows();
  const Share rows(R, member, members);
  const int64_t n = rows.end - rows.begin;
  const auto attend_together = [&] {
    if (!w.own) return attend(rows);
    try {
      look(rows);
    } catch (...) {
      faults_[static_cast<size_t>(member)] = std::current_exception();
    }
    team_.wait();
    w.value.product(R, found_.f32(), found_.size(1), context_.f32(), member, members);
    team_.wait();
  };

  // 1. the word's products; the context, if it enters the cell
  w.input.product(R, input_.f32(), input_.size(1), of_input_.f32(), member, members);
  if (w.context_first) attend_together();
  team_.wait();

  // 2. the new state
  float* state = state_.f32() + rows.begin * H;
  float *input = of_input_.f32() + rows.begin * of_input, *product = of_state_.f32() + rows.begin * of_state;
  const float* context = w.context_first ? context_.f32() + rows.begin * w.context : nullptr;
  if (w.norm_ih) {  // of the whole input's product
    for (int64_t r = 0; context && r < n; ++r)
      kernels::add_into(context + r * w.context, input + r * of_input, 3 * H);
    w.norm_ih(n, input, of_input);
    context = nullptr;
  }
  kernels::gru_state(
      n, H, {input, of_input, context, w.context, product, of_state, w.b_ih, w.b_hh, state, H}, state, H);
  team_.wait();

  // 3. its products: the readout's share, the next step's gates and query
  w.state.product(R, state_.f32(), H, of_state_.f32(), member, members);
  team_.wait();

  // 4. the readout, or attention vector
  w.norm_hh(n, of_state_.f32() + rows.begin * of_state, of_state);
  if (!w.context_first) attend_together();
  read_out(rows);
  team_.wait();

  // 5. the logits
  finish(readout_.f32(), H, member);
}

void PackedDecoder::select(const std::vector<int64_t>& rows) {
  if (sentences_.select(rows) == RowSentences::Change::none) return;
  reorder(state_, state_spare_, rows, 0);
  reorder(of_state_, of_state_spare_, rows, 0);
  if (w_->feed) reorder(input_, input_spare_, rows, w_->E);
  std::vector<AttentionState> chosen;
  for (int64_t row : rows)
    if (w_->own) chosen.push_back(looked_[static_cast<size_t>(row)]);
  looked_ = std::move(chosen);
  set_rows(static_cast<int64_t>(rows.size()));
}

void PackedDecoder::join(const IncrementalDecoder& started) {
  const auto& other = static_cast<const PackedDecoder&>(started);
  sentences_.join(sources_, other.sources_);
  looked_.insert(looked_.end(), other.looked_.begin(), other.looked_.end());
  const int64_t R = R_ + other.R_;
  for (auto part : {&PackedDecoder::state_, &PackedDecoder::of_state_, &PackedDecoder::input_})
    (this->*part).rows(R_, R).copy_from((other.*part).rows(0, other.R_));
  if (other.S_ > S_ && alignment_.defined()) alignment_ = Tensor({most_, other.S_}, DType::f32);
  S_ = std::max(S_, other.S_);
  set_rows(R);
}

}  // namespace packed

std::unique_ptr<Generator> make_generator(const Encoder& encoder, const Decoder& decoder,
                                          const Linear& output, const GeneratorOptions& options) {
  using namespace packed;
  if (!PackedEncoder::fits(encoder) || !DecoderWeights::fits(decoder, output))
    return composed_generator(encoder, decoder, output);
  auto laid_out = std::make_shared<LaidOut<Weights>>(options.int8, [&](const Layout& layout) {
    return Weights{PackedEncoder(encoder, layout), DecoderWeights(*as_recurrent(decoder), output, layout)};
  });
  std::shared_ptr<const Generator> plain = composed_generator(encoder, decoder, output);
  auto start = [=](const Tensor& source, const Tensor& lengths, const IncrementalOptions& o) {
    if (!o.hidden.empty()) return plain->start(source, lengths, o);
    Team team(o.pool);
    std::shared_ptr<const Weights> weights = laid_out->for_search(source, o);
    Annotations read = weights->encoder(source, lengths, team);
    std::shared_ptr<const DecoderWeights> of_decoder(weights, &weights->decoder);
    return std::unique_ptr<IncrementalDecoder>(new PackedDecoder(of_decoder, read, o));
  };
  return std::make_unique<Generator>(start);
}

}  // namespace gradus::nn
