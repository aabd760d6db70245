#include <gradus/nn/packed/transformer.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <gradus/kernels/attention.h>
#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/layer_norm.h>
#include <gradus/nn/packed/encoder.h>
#include <gradus/ops/recurrence.h>

namespace gradus::nn::packed {
namespace {

using Norm = TransformerWeights::Norm;

Norm norm_of(const LayerNorm& n) {
  return {n.weight.value().f32(), n.bias.value().f32(), static_cast<float>(n.eps)};
}

// Rows begin .. end - 1 of a weight and its bias.
Matrix rows_of(const Parameter& weight, const Parameter& bias, int64_t begin, int64_t end,
               const Layout& layout) {
  return Matrix({WeightPart::of_rows(weight, begin, end)}, layout,
                bias.defined() ? bias.value().f32() + begin : nullptr);
}

Matrix whole(const Linear& l, const Layout& layout) {
  return rows_of(l.weight, l.bias, 0, l.weight.shape()[0], layout);
}

TransformerWeights::FeedForward forward_of(const FeedForward& f, const LayerNorm& norm,
                                           const Layout& layout) {
  return {{whole(f.linear1, layout), whole(f.linear2, layout), norm_of(norm)}, f.gelu};
}

// The input's rows of the first `parts` of queries, keys and values.
TransformerWeights::Part attention_of(const MultiheadAttention& a, int64_t parts, const LayerNorm& norm,
                                      const Layout& layout) {
  return {rows_of(a.in_proj_weight, a.in_proj_bias, 0, parts * a.embed_dim, layout),
          whole(a.out_proj, layout), norm_of(norm)};
}

// A word's vector, scaled, and its position's.
void embed(const Embedding& words, int32_t id, const float* position, int64_t E, float* to) {
  look_up(words, &id, 1, to, E);
  const float scale = static_cast<float>(std::sqrt(static_cast<double>(E)));
  for (int64_t i = 0; i < E; ++i) to[i] = to[i] * scale + (position ? position[i] : 0.0f);
}

Tensor positions_of(const std::unique_ptr<Positions>& positions, int64_t first, int64_t count) {
  return positions ? positions->rows(first, count, DType::f32).value() : Tensor();
}

const float* row_of(const Tensor& x, int64_t r) { return x.defined() ? x.f32() + r * x.size(1) : nullptr; }

constexpr int64_t kGroup = 128;  // words that go through an encoder together, or a few more

}  // namespace

bool TransformerWeights::fits(const TransformerSeq2Seq& model) {
  return model.output_bias.value().dtype() == DType::f32 && model.output_weight.var().dtype() == DType::f32;
}

TransformerWeights::TransformerWeights(const TransformerSeq2Seq& model, const Layout& layout) {
  const TransformerDecoderLayer& first = model.decoder.layers[0];
  E = first.self_attn.embed_dim;
  F = first.feed_forward.linear1.weight.shape()[0];
  heads = first.self_attn.num_heads;
  scale = static_cast<float>(first.self_attn.scale);
  norm_first = first.norm_first;
  for (const TransformerEncoderLayer& l : model.encoder.layers)
    encoder.push_back(
        {attention_of(l.self_attn, 3, l.norm1, layout), forward_of(l.feed_forward, l.norm2, layout)});
  for (const TransformerDecoderLayer& l : model.decoder.layers) {
    const MultiheadAttention& source = l.multihead_attn;
    decoder.push_back({attention_of(l.self_attn, 3, l.norm1, layout),
                       attention_of(source, 1, l.norm2, layout),
                       rows_of(source.in_proj_weight, source.in_proj_bias, E, 3 * E, layout),
                       forward_of(l.feed_forward, l.norm3, layout)});
  }
  if (model.encoder.norm) encoder_norm = norm_of(*model.encoder.norm);
  if (model.decoder.norm) decoder_norm = norm_of(*model.decoder.norm);
  out = rows_of(model.output_weight, model.output_bias, 0, model.output_bias.shape()[0], layout.of_output());
}

void PackedTransformer::normalise(const Norm& norm, const Tensor& from, const Tensor& to, const Share& rows) {
  int64_t at = rows.begin * w_->E;
  kernels::layer_norm(rows.end - rows.begin, w_->E, from.f32() + at, w_->E, norm.weight, norm.bias, norm.eps,
                      false, to.f32() + at, w_->E, stats_.f32() + 2 * rows.begin);
}

// The sum, normalised where there is a norm, when all members' rows are.
const Tensor& PackedTransformer::normed(const std::optional<Norm>& norm, const Share& rows) {
  if (norm) normalise(*norm, x_, normed_, rows);
  team_.wait();
  return norm ? normed_ : x_;
}

void PackedTransformer::multiply(const Matrix& m, int64_t R, const Tensor& x, const Tensor& to, int member) {
  m.product(R, x.f32(), x.size(1), to.f32(), member, team_.size());
  team_.wait();
}

void PackedTransformer::pass(const TransformerWeights::Part& part, int64_t R, int member, const Tensor& inner,
                             const Tensor& made, const std::function<void(const Share& rows)>& between) {
  const Share rows(R, member, team_.size());
  multiply(part.in, R, normed(w_->norm_first ? std::optional(part.norm) : std::nullopt, rows), inner, member);
  between(rows);
  team_.wait();
  multiply(part.out, R, made, result_, member);
  // The result joins the sum: pre-LN as it is, post-LN normalised.
  int64_t at = rows.begin * w_->E, n = (rows.end - rows.begin) * w_->E;
  if (w_->norm_first) return kernels::add_into(result_.f32() + at, x_.f32() + at, n);
  kernels::add_into(x_.f32() + at, result_.f32() + at, n);
  normalise(part.norm, result_, x_, rows);
}

void PackedTransformer::attend(const TransformerWeights::Part& part, int64_t R, int member,
                               const std::function<void(int64_t r)>& look) {
  pass(part, R, member, projected_, found_, [&](const Share& rows) {
    for (int64_t r = rows.begin; r < rows.end; ++r) look(r);
  });
}

// What row r finds at S positions, keys `stride` apart and values behind them -> weights [heads, S].
const float* PackedTransformer::look_at(int64_t S, const float* keys, int64_t stride, int64_t r,
                                        const float* query, int member) {
  const int64_t d = w_->E / w_->heads;
  float* scores = scores_.f32() + member * scores_.size(1);
  // Heads stand beside each other, like the sentences of a batch.
  kernels::multiplicative_attention(S, stride / d, d, d, keys, keys + w_->E, query, w_->scale, nullptr,
                                    scores, found_.f32() + r * w_->E, d, w_->heads);
  return scores;
}

void PackedTransformer::feed_forward(const TransformerWeights::FeedForward& part, int64_t R, int member) {
  pass(part, R, member, hidden_, hidden_, [&](const Share& rows) {
    float* from = hidden_.f32() + rows.begin * w_->F;
    const int64_t n = (rows.end - rows.begin) * w_->F;
    if (!part.gelu) return kernels::relu(from, from, n);
    std::transform(from, from + n, from, [](float v) {
      return v * (0.5f * (1 + std::erf(v * (std::numbers::sqrt2_v<float> / 2))));
    });
  });
}

PackedTransformer::PackedTransformer(const TransformerSeq2Seq& model,
                                     std::shared_ptr<const TransformerWeights> weights, const Tensor& source,
                                     const Tensor& lengths, const IncrementalOptions& options)
    : PackedSteps(weights->out, source.size(1) * options.rows_per_sentence, options.pool),
      model_(model),
      w_(std::move(weights)),
      sentences_(source.size(1), options.rows_per_sentence),
      S_(source.size(0)) {
  const int64_t B = source.size(1);
  NoGrad guard;
  check_lengths("start", lengths, S_, B);
  // Sentences of some words go through the encoder together: few enough for the cache.
  std::vector<int64_t> groups{0};
  int64_t largest = most_, words = 0;
  for (int64_t b = 0; b < B; ++b) {
    words += lengths.i32()[b];
    if (words < kGroup && b + 1 < B) continue;
    groups.push_back(b + 1);
    largest = std::max(largest, std::exchange(words, 0));
  }
  target_.resize(w_->decoder.size());
  auto rows_of = [&](int64_t n) { return Tensor({largest, n}, DType::f32); };
  x_ = rows_of(w_->E);
  normed_ = rows_of(w_->E);
  projected_ = rows_of(3 * w_->E);
  found_ = rows_of(w_->E);
  result_ = rows_of(w_->E);
  hidden_ = rows_of(w_->F);
  stats_ = rows_of(2);
  scores_ = Tensor({team_.size(), w_->heads * S_}, DType::f32);
  for (size_t i = 1; i < groups.size(); ++i) read(source, lengths, groups[i - 1], groups[i]);
  if (options.weights) alignment_ = Tensor({most_, S_}, DType::f32);
  place_.resize(static_cast<size_t>(B));
  std::iota(place_.begin(), place_.end(), int64_t{0});
  said_.resize(static_cast<size_t>(B));
  set_rows(B);
}

// Sentences first .. end - 1 through the encoder, to what the decoder's layers look at.
void PackedTransformer::read(const Tensor& ids, const Tensor& lengths, int64_t first, int64_t end) {
  const TransformerWeights& w = *w_;
  const int64_t E = w.E;
  const Tensor positions = positions_of(model_.source_positions, 0, S_);
  std::vector<int64_t> sentence, begin{0};  // of each row; its first row, by sentence
  for (int64_t b = first; b < end; ++b) {
    for (int64_t s = 0; s < lengths.i32()[b]; ++s) {
      embed(model_.source_embedding, ids.i32()[s * ids.size(1) + b], row_of(positions, s), E,
            x_.f32() + static_cast<int64_t>(sentence.size()) * E);
      sentence.push_back(b - first);
    }
    begin.push_back(static_cast<int64_t>(sentence.size()));
  }
  const int64_t R = static_cast<int64_t>(sentence.size());
  std::vector<Tensor> memory;  // by layer, of all sentences
  for (size_t i = 0; i < w.decoder.size(); ++i) memory.push_back(Tensor({R, 2 * E}, DType::f32));
  team_.run([&](int member) {
    for (const TransformerWeights::EncoderLayer& l : w.encoder) {
      attend(l.own, R, member, [&](int64_t r) {
        const size_t b = static_cast<size_t>(sentence[static_cast<size_t>(r)]);
        look_at(begin[b + 1] - begin[b], projected(begin[b]) + E, 3 * E, r, projected(r), member);
      });
      feed_forward(l.forward, R, member);
    }
    const float* out = normed(w.encoder_norm, Share(R, member, team_.size())).f32();
    for (size_t i = 0; i < memory.size(); ++i)
      w.decoder[i].memory.product(R, out, E, memory[i].f32(), member, team_.size());
  });
  for (size_t b = 0; b + 1 < begin.size(); ++b) {
    sources_.emplace_back();
    for (const Tensor& all : memory) sources_.back().push_back(all.rows(begin[b], begin[b + 1]));
  }
}

void PackedTransformer::make_room(int64_t words) {
  if (words <= room_) return;
  int64_t room = std::max<int64_t>(16, 2 * room_), n = 2 * w_->E;
  for (Tensor& old : target_) {
    Tensor larger({most_, room, n}, DType::f32);
    for (size_t r = 0; r < place_.size(); ++r)
      if (said_[r] > 0)
        std::copy_n(old.f32() + place_[r] * room_ * n, said_[r] * n, larger.f32() + place_[r] * room * n);
    old = larger;
  }
  room_ = room;
  scores_ = Tensor({team_.size(), w_->heads * std::max(room_, S_)}, DType::f32);
}

Tensor PackedTransformer::run(const Tensor& previous) {
  {
    NoGrad guard;
    for (int64_t t : said_) make_room(t + 1);
    Tensor position;
    for (int64_t r = 0; r < R_; ++r) {
      const int64_t t = said_[static_cast<size_t>(r)], before = r > 0 ? said_[static_cast<size_t>(r) - 1] : -1;
      if (t != before) position = positions_of(model_.target_positions, t, 1);
      embed(model_.target_embedding, previous.i32()[r], row_of(position, 0), w_->E, x_.f32() + r * w_->E);
    }
  }
  team_.run(job_);
  for (int64_t& t : said_) ++t;
  return (w_->decoder_norm ? normed_ : x_).rows(0, R_);
}

// Keys and values of the word join those of its row, which it looks at.
void PackedTransformer::look_back(size_t layer, int member, int64_t r) {
  const int64_t E = w_->E;
  const float* qkv = projected(r);
  const int64_t t = said_[static_cast<size_t>(r)];
  float* keys = target_[layer].f32() + place_[static_cast<size_t>(r)] * room_ * 2 * E;
  std::copy_n(qkv + E, 2 * E, keys + t * 2 * E);
  look_at(t + 1, keys, 2 * E, r, qkv, member);
}

void PackedTransformer::look_at_source(size_t layer, int member, int64_t r) {
  const int64_t E = w_->E;
  const size_t b = static_cast<size_t>(sentences_.of_rows()[static_cast<size_t>(r)]);
  const Tensor& keys = sources_[b][layer];
  const int64_t S = keys.size(0);
  // Queries alone stand there, row after row.
  const float* scores = look_at(S, keys.f32(), 2 * E, r, projected(0) + r * E, member);
  if (layer + 1 < target_.size() || !alignment_.defined()) return;
  float* mean = alignment_.f32() + r * S_;
  std::fill_n(mean, S_, 0.0f);
  for (int64_t h = 0; h < w_->heads; ++h)
    for (int64_t s = 0; s < S; ++s) mean[s] += scores[h * S + s] / static_cast<float>(w_->heads);
}

void PackedTransformer::run_step(int member) {
  const TransformerWeights& w = *w_;
  for (size_t i = 0; i < w.decoder.size(); ++i) {
    const TransformerWeights::DecoderLayer& l = w.decoder[i];
    attend(l.own, R_, member, [=, this](int64_t r) { look_back(i, member, r); });
    attend(l.source, R_, member, [=, this](int64_t r) { look_at_source(i, member, r); });
    feed_forward(l.forward, R_, member);
  }
  finish(normed(w.decoder_norm, Share(R_, member, team_.size())).f32(), w.E, member);
}

void PackedTransformer::select(const std::vector<int64_t>& rows) {
  if (sentences_.select(rows) == RowSentences::Change::none) return;
  // The first row that continues an old one takes its place over; the others copy it into free ones.
  std::vector<int64_t> places(rows.size(), -1), said;
  std::vector<uint8_t> used(static_cast<size_t>(most_), 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    int64_t place = place_[static_cast<size_t>(rows[i])];
    said.push_back(said_[static_cast<size_t>(rows[i])]);
    if (!std::exchange(used[static_cast<size_t>(place)], 1)) places[i] = place;
  }
  int64_t n = 2 * w_->E, next = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (places[i] >= 0) continue;
    while (std::exchange(used[static_cast<size_t>(next)], 1)) ++next;
    places[i] = next;
    int64_t from = place_[static_cast<size_t>(rows[i])] * room_ * n, to = next * room_ * n;
    for (const Tensor& t : target_)
      if (t.defined()) std::copy_n(t.f32() + from, said[i] * n, t.f32() + to);
  }
  place_ = std::move(places);
  said_ = std::move(said);
  set_rows(static_cast<int64_t>(rows.size()));
}

void PackedTransformer::join(const IncrementalDecoder& started) {
  const auto& other = static_cast<const PackedTransformer&>(started);
  sentences_.join(sources_, other.sources_);
  std::vector<uint8_t> used(static_cast<size_t>(most_), 0);
  for (int64_t place : place_) used[static_cast<size_t>(place)] = 1;
  for (int64_t next = 0; place_.size() < sentences_.of_rows().size(); ++next)
    if (!used[static_cast<size_t>(next)]) place_.push_back(next);
  said_.resize(place_.size());
  if (other.S_ > S_) {
    S_ = other.S_;
    scores_ = Tensor({team_.size(), w_->heads * std::max(room_, S_)}, DType::f32);
    if (alignment_.defined()) alignment_ = Tensor({most_, S_}, DType::f32);
  }
  set_rows(R_ + other.R_);
}

}  // namespace gradus::nn::packed
