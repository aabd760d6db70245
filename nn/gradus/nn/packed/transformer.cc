#include <gradus/nn/packed/transformer.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <gradus/kernels/attention.h>
#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/layer_norm.h>
#include <gradus/ops/attention.h>

namespace gradus::nn::packed {
namespace {

using Norm = TransformerWeights::Norm;
using Product = TransformerWeights::Product;

Norm norm_of(const LayerNorm& n) {
  return {n.weight.value().f32(), n.bias.value().f32(), static_cast<float>(n.eps)};
}

// Rows begin .. end - 1 of a weight and its bias.
Product rows_of(const Parameter& weight, const Parameter& bias, int64_t begin, int64_t end,
                const Layout& layout) {
  return {Matrix({WeightPart::of_rows(weight, begin, end)}, layout),
          bias.defined() ? bias.value().f32() + begin : nullptr};
}

Product whole(const Linear& l, const Layout& layout) {
  return rows_of(l.weight, l.bias, 0, l.weight.shape()[0], layout);
}

TransformerWeights::Layer layer_of(const TransformerDecoderLayer& l, int64_t E, const Layout& layout) {
  const MultiheadAttention &own = l.self_attn, &source = l.multihead_attn;
  auto part = [&](const MultiheadAttention& a, int64_t begin, int64_t end) {
    return rows_of(a.in_proj_weight, a.in_proj_bias, begin * E, end * E, layout);
  };
  return {part(own, 0, 3),
          whole(own.out_proj, layout),
          part(source, 0, 1),
          part(source, 1, 2),
          part(source, 2, 3),
          whole(source.out_proj, layout),
          whole(l.feed_forward.linear1, layout),
          whole(l.feed_forward.linear2, layout),
          {norm_of(l.norm1), norm_of(l.norm2), norm_of(l.norm3)},
          l.feed_forward.gelu};
}

// Rows of x [S, B, E] without padding: those of sentence b from begin[b] on.
Tensor without_padding(const Tensor& x, const std::vector<int64_t>& begin) {
  int64_t B = x.size(1), E = x.size(2);
  Tensor out({begin.back(), E}, DType::f32);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t s = 0; s < begin[b + 1] - begin[b]; ++s)
      std::copy_n(x.f32() + (s * B + b) * E, E, out.f32() + (begin[b] + s) * E);
  return out;
}

}  // namespace

bool TransformerWeights::fits(const TransformerSeq2Seq& model) {
  return model.output_bias.value().dtype() == DType::f32 && model.output_weight.var().dtype() == DType::f32;
}

TransformerWeights::TransformerWeights(const TransformerSeq2Seq& model, const Layout& layout) {
  const TransformerDecoderLayer& first = model.decoder.layers[0];
  E = first.self_attn.embed_dim;
  F = first.feed_forward.linear1.weight.shape()[0];
  V = model.output_bias.shape()[0];
  heads = first.self_attn.num_heads;
  scale = static_cast<float>(first.self_attn.scale);
  norm_first = first.norm_first;
  for (const TransformerDecoderLayer& l : model.decoder.layers) layers.push_back(layer_of(l, E, layout));
  if (model.decoder.norm) last = norm_of(*model.decoder.norm);
  out = rows_of(model.output_weight, model.output_bias, 0, V, layout);
}

PackedTransformer::PackedTransformer(const TransformerSeq2Seq& model,
                                     std::shared_ptr<const TransformerWeights> weights, const Tensor& source,
                                     const Tensor& lengths, const IncrementalOptions& options)
    : model_(model),
      w_(std::move(weights)),
      team_(options.pool),
      job_([this](int member) { run_step(member); }),
      weights_wanted_(options.weights),
      sentences_(source.size(1), options.rows_per_sentence),
      begin_{0},
      most_(source.size(1) * options.rows_per_sentence) {
  const TransformerWeights& w = *w_;
  int64_t B = source.size(1);
  S_ = source.size(0);
  NoGrad guard;
  Tensor mask = length_mask(lengths, S_);
  for (int64_t b = 0; b < B; ++b) begin_.push_back(begin_.back() + lengths.i32()[b]);
  Tensor memory = without_padding(model.encode(source, mask).value(), begin_);
  int64_t words = memory.size(0);
  for (size_t i = 0; i < w.layers.size(); ++i)
    source_.push_back({Tensor({words, w.E}, DType::f32), Tensor({words, w.E}, DType::f32)});
  target_.resize(w.layers.size());
  team_.run([&](int member) {
    for (size_t i = 0; i < w.layers.size(); ++i)
      for (auto [product, to] : {std::pair{&w.layers[i].cross_keys, &source_[i].keys},
                                 std::pair{&w.layers[i].cross_values, &source_[i].values}})
        product->matrix.product(words, memory.f32(), w.E, product->bias, to->f32(), member, team_.size());
  });
  auto rows_of = [&](int64_t n) { return Tensor({most_, n}, DType::f32); };
  x_ = rows_of(w.E);
  normed_ = rows_of(w.E);
  projected_ = rows_of(3 * w.E);
  found_ = rows_of(w.E);
  result_ = rows_of(w.E);
  hidden_ = rows_of(w.F);
  stats_ = rows_of(2);
  logits_ = rows_of(w.V);
  if (weights_wanted_) alignment_ = rows_of(S_);
  place_.resize(static_cast<size_t>(B));
  std::iota(place_.begin(), place_.end(), int64_t{0});
  set_rows(B);
}

void PackedTransformer::set_rows(int64_t R) {
  if (R == R_) return;
  R_ = R;
  logits_view_ = logits_.rows(0, R);
  if (weights_wanted_) weights_view_ = alignment_.rows(0, R);
}

void PackedTransformer::make_room() {
  if (length_ < room_) return;
  int64_t room = std::max<int64_t>(16, 2 * room_), E = w_->E;
  for (KeysValues& kv : target_)
    for (Tensor* old : {&kv.keys, &kv.values}) {
      Tensor larger({most_, room, E}, DType::f32);
      for (int64_t place : place_)
        if (length_ > 0)
          std::copy_n(old->f32() + place * room_ * E, length_ * E, larger.f32() + place * room * E);
      *old = larger;
    }
  room_ = room;
  scores_ = Tensor({team_.size(), w_->heads * std::max(room_, S_)}, DType::f32);
}

const Tensor& PackedTransformer::step(const Tensor& previous) {
  if (previous.dtype() != DType::i32 || previous.shape() != Shape{R_})
    fail("step", "previous words must be i32 [" + std::to_string(R_) + "]: " + previous.shape().str());
  NoGrad guard;
  make_room();
  x_.rows(0, R_).copy_from(model_.embed_target(previous.reshape({1, R_}), length_).value().row(0));
  team_.run(job_);
  ++length_;
  return logits_view_;
}

Tensor PackedTransformer::readouts(const Tensor& previous) {
  no_logits_ = true;
  step(previous);
  no_logits_ = false;
  return (w_->norm_first ? normed_ : x_).rows(0, R_);
}

// Keys and values of the word join those of its row, which it looks at.
void PackedTransformer::look_back(size_t layer, int member, const Share& rows) {
  const TransformerWeights& w = *w_;
  int64_t E = w.E, d = E / w.heads;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* qkv = projected_.f32() + r * 3 * E;
    int64_t at = place_[static_cast<size_t>(r)] * room_ * E;
    float *keys = target_[layer].keys.f32() + at, *values = target_[layer].values.f32() + at;
    std::copy_n(qkv + E, E, keys + length_ * E);
    std::copy_n(qkv + 2 * E, E, values + length_ * E);
    // Heads stand beside each other, like the sentences of a batch.
    kernels::multiplicative_attention(length_ + 1, w.heads, d, d, keys, values, qkv, w.scale, nullptr,
                                      scores_.f32() + member * scores_.size(1), found_.f32() + r * E, d);
  }
}

void PackedTransformer::look_at_source(size_t layer, int member, const Share& rows) {
  const TransformerWeights& w = *w_;
  int64_t E = w.E, d = E / w.heads;
  bool last = layer + 1 == w.layers.size();
  float* scores = scores_.f32() + member * scores_.size(1);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    size_t b = static_cast<size_t>(sentences_.of_rows()[static_cast<size_t>(r)]);
    int64_t S = begin_[b + 1] - begin_[b], at = begin_[b] * E;
    kernels::multiplicative_attention(S, w.heads, d, d, source_[layer].keys.f32() + at,
                                      source_[layer].values.f32() + at, projected_.f32() + r * E, w.scale,
                                      nullptr, scores, found_.f32() + r * E, d);
    if (!last || !weights_wanted_) continue;
    float* mean = alignment_.f32() + r * S_;
    std::fill_n(mean, S_, 0.0f);
    for (int64_t h = 0; h < w.heads; ++h)
      for (int64_t s = 0; s < S; ++s) mean[s] += scores[h * S + s] / static_cast<float>(w.heads);
  }
}

void PackedTransformer::activate(bool gelu, const Share& rows) {
  float *begin = hidden_.f32() + rows.begin * w_->F, *end = hidden_.f32() + rows.end * w_->F;
  if (!gelu)
    std::transform(begin, end, begin, [](float v) { return v > 0 ? v : 0.0f; });
  else
    std::transform(begin, end, begin, [](float v) {
      return v * (0.5f * (1 + std::erf(v * (std::numbers::sqrt2_v<float> / 2))));
    });
}

void PackedTransformer::normalise(const Norm& norm, const Tensor& from, const Tensor& to, const Share& rows) {
  int64_t at = rows.begin * w_->E;
  kernels::layer_norm(rows.end - rows.begin, w_->E, from.f32() + at, w_->E, norm.weight, norm.bias, norm.eps,
                      false, to.f32() + at, w_->E, stats_.f32() + 2 * rows.begin);
}

// A part's result joins the sum: pre-LN, and what the next part takes of it; post-LN, normalised.
void PackedTransformer::join(const Norm& own, const Norm* next, const Share& rows) {
  int64_t at = rows.begin * w_->E, n = (rows.end - rows.begin) * w_->E;
  if (w_->norm_first) {
    kernels::add_into(result_.f32() + at, x_.f32() + at, n);
    if (next) normalise(*next, x_, normed_, rows);
  } else {
    kernels::add_into(x_.f32() + at, result_.f32() + at, n);
    normalise(own, result_, x_, rows);
  }
}

void PackedTransformer::run_step(int member) {
  const TransformerWeights& w = *w_;
  const int members = team_.size();
  const Share rows(R_, member, members);
  const Tensor& taken = w.norm_first ? normed_ : x_;  // by the parts
  auto multiply = [&](const Product& p, const Tensor& x, const Tensor& to) {
    p.matrix.product(R_, x.f32(), x.size(1), p.bias, to.f32(), member, members);
    team_.wait();
  };
  if (w.norm_first) normalise(w.layers[0].norms[0], x_, normed_, rows);
  team_.wait();
  for (size_t i = 0; i < w.layers.size(); ++i) {
    const TransformerWeights::Layer& l = w.layers[i];
    const Norm* after = i + 1 < w.layers.size() ? &w.layers[i + 1].norms[0] : w.last ? &*w.last : nullptr;
    multiply(l.self_in, taken, projected_);
    look_back(i, member, rows);
    team_.wait();
    multiply(l.self_out, found_, result_);
    join(l.norms[0], &l.norms[1], rows);
    team_.wait();
    multiply(l.cross_query, taken, projected_);
    look_at_source(i, member, rows);
    team_.wait();
    multiply(l.cross_out, found_, result_);
    join(l.norms[1], &l.norms[2], rows);
    team_.wait();
    multiply(l.up, taken, hidden_);
    activate(l.gelu, rows);
    team_.wait();
    multiply(l.down, hidden_, result_);
    join(l.norms[2], after, rows);
    team_.wait();
  }
  if (no_logits_) return;
  w.out.matrix.product(R_, taken.f32(), w.E, w.out.bias, logits_.f32(), member, members);
}

void PackedTransformer::select(const std::vector<int64_t>& rows) {
  if (sentences_.select(rows) == RowSentences::Change::none) return;
  // The first row that continues an old one takes its place over; the others copy it into free ones.
  std::vector<int64_t> places(rows.size(), -1), doubled;
  std::vector<uint8_t> used(static_cast<size_t>(most_), 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    int64_t place = place_[static_cast<size_t>(rows[i])];
    if (used[static_cast<size_t>(place)]) {
      doubled.push_back(static_cast<int64_t>(i));
      continue;
    }
    used[static_cast<size_t>(place)] = 1;
    places[i] = place;
  }
  int64_t E = w_->E, next = 0;
  for (int64_t i : doubled) {
    while (used[static_cast<size_t>(next)]) ++next;
    used[static_cast<size_t>(next)] = 1;
    places[static_cast<size_t>(i)] = next;
    int64_t from = place_[static_cast<size_t>(rows[static_cast<size_t>(i)])] * room_ * E,
            to = next * room_ * E;
    for (const KeysValues& kv : target_)
      for (const Tensor& t : {kv.keys, kv.values})
        if (length_ > 0) std::copy_n(t.f32() + from, length_ * E, t.f32() + to);
  }
  place_ = std::move(places);
  set_rows(static_cast<int64_t>(rows.size()));
}

}  // namespace gradus::nn::packed
