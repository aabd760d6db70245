#include "dissection.h"

#include <cmath>

#include <gradus/ops.h>

#include "sentence/dissection.h"

namespace lens::transformer {
namespace {

using namespace gradus;

// [R, n, E] -> [n, H, R, E / H]
Var by_head(const Var& x, int64_t heads) {
  return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {1, 2, 0, 3});
}

// n copies of [R, 1, E], or of [1, H, R, C].
Var copies(const Var& x, int64_t n) {
  if (!x.defined()) return x;
  if (x.dims() == 4) return expand(x, {n, x.size(1), x.size(2), x.size(3)});
  return expand(x, {x.size(0), n, x.size(2)});
}

}  // namespace

const char* title_of(Part part) {
  switch (part) {
    case Part::encoder_self: return "encoder self-attention";
    case Part::encoder_ff: return "encoder feed-forward";
    case Part::decoder_self: return "decoder self-attention";
    case Part::cross: return "cross-attention";
    case Part::decoder_ff: return "decoder feed-forward";
    default: return "output";
  }
}

int level(Field field) {
  switch (field) {
    case kX: return 0;
    case kResidual:
    case kToQuery:
    case kToKey:
    case kToValue: return 1;
    case kNormQuery:
    case kNormKey:
    case kNormValue: return 2;
    case kQ:
    case kK:
    case kV:
    case kHidden: return 3;
    case kScores:
    case kActive: return 4;
    case kWeights: return 5;
    case kMixed: return 6;
    case kOut: return 7;
    case kSum: return 8;
    default: return 9;
  }
}

Var embed_source(const nn::TransformerSeq2Seq& network, const Tensor& words) {
  Var x = network.source_embedding(words) * std::sqrt(static_cast<double>(network.config.d_model));
  return network.source_positions ? (*network.source_positions)(x) : x;
}

Dissection::Dissection(const nn::TransformerSeq2Seq& network, std::vector<int32_t> source,
                       const std::vector<int32_t>& target, bool causal)
    : network_(network),
      source_(std::move(source)),
      target_(target),
      causal_(causal && network.config.causal) {
  target_.push_back(nn::kEos);
}

const nn::MultiheadAttention& Dissection::attention(const Sublayer& s) const {
  size_t layer = static_cast<size_t>(s.layer);
  if (s.part == Part::encoder_self) return network_.encoder.layers[layer].self_attn;
  const nn::TransformerDecoderLayer& of = network_.decoder.layers[layer];
  return s.part == Part::cross ? of.multihead_attn : of.self_attn;
}

const nn::FeedForward& Dissection::feed_forward(const Sublayer& s) const {
  size_t layer = static_cast<size_t>(s.layer);
  return s.part == Part::encoder_ff ? network_.encoder.layers[layer].feed_forward
                                    : network_.decoder.layers[layer].feed_forward;
}

const nn::LayerNorm* Dissection::norm(const Sublayer& s) const {
  size_t layer = static_cast<size_t>(s.layer);
  switch (s.part) {
    case Part::encoder_self: return &network_.encoder.layers[layer].norm1;
    case Part::encoder_ff: return &network_.encoder.layers[layer].norm2;
    case Part::decoder_self: return &network_.decoder.layers[layer].norm1;
    case Part::cross: return &network_.decoder.layers[layer].norm2;
    case Part::decoder_ff: return &network_.decoder.layers[layer].norm3;
    default: return network_.decoder.norm ? &*network_.decoder.norm : nullptr;
  }
}

Tensor Dissection::mask(const Sublayer& s) const {
  if (s.part != Part::decoder_self || !causal_) return {};
  int64_t T = static_cast<int64_t>(target_.size());
  Tensor m = Tensor::zeros({T, T}, DType::u8);
  for (int64_t t = 0; t < T; ++t)
    for (int64_t j = 0; j <= t; ++j) m.u8()[t * T + j] = 1;
  return m;
}

// Fields of later levels than `after` from the ones before.
void Dissection::compute(Sublayer& s, const Var& memory, int after) const {
  const bool attending = attends(s.part), crossing = s.part == Part::cross;
  const nn::LayerNorm* own = norm(s);
  const bool first = norm_first() && own;
  auto due = [after](Field f) { return level(f) > after; };
  if (due(kResidual)) {
    if (s.part != Part::output) s[kResidual] = tap(s[kX], "residual");
    s[kToQuery] = tap(s[kX], attending ? "to queries" : "through");
    if (attending) {
      s[kToKey] = tap(crossing ? memory : s[kX], "to keys");
      s[kToValue] = tap(crossing ? memory : s[kX], "to values");
    }
  }
  if (due(kNormQuery) && first) {
    s[kNormQuery] = (*own)(s[kToQuery]);
    if (attending && !crossing) {
      s[kNormKey] = (*own)(s[kToKey]);
      s[kNormValue] = (*own)(s[kToValue]);
    }
  }
  auto normed = [&](Field norm, Field plain) { return s[norm].defined() ? s[norm] : s[plain]; };
  if (s.part == Part::output) {
    if (due(kSum)) s[kSum] = normed(kNormQuery, kToQuery);
    return;
  }
  if (attending) {
    const nn::MultiheadAttention& a = attention(s);
    int64_t E = a.embed_dim, H = a.num_heads;
    auto projected = [&](const Var& x, int64_t block) {
      return linear(x, slice(a.in_proj_weight, 0, block * E, (block + 1) * E),
                    slice(a.in_proj_bias, 0, block * E, (block + 1) * E));
    };
    if (due(kQ)) {
      s[kQ] = projected(normed(kNormQuery, kToQuery), 0);
      s[kK] = projected(normed(kNormKey, kToKey), 1);
      s[kV] = projected(normed(kNormValue, kToValue), 2);
    }
    if (due(kScores)) s[kScores] = matmul(by_head(s[kQ], H), transpose(by_head(s[kK], H), 2, 3)) * a.scale;
    if (due(kWeights)) s[kWeights] = softmax(s[kScores], {.mask = mask(s)});
    if (due(kMixed)) {
      Var o = permute(matmul(s[kWeights], by_head(s[kV], H)), {2, 0, 1, 3});
      s[kMixed] = reshape(o, {o.size(0), o.size(1), E});
    }
    if (due(kOut)) s[kOut] = a.out_proj(s[kMixed]);
  } else {
    const nn::FeedForward& f = feed_forward(s);
    if (due(kHidden)) s[kHidden] = f.linear1(normed(kNormQuery, kToQuery));
    if (due(kActive))
      s[kActive] = f.gelu                ? gelu(s[kHidden])
                   : s.pattern.defined() ? s[kHidden] * s.pattern
                                         : relu(s[kHidden]);
    if (due(kOut)) s[kOut] = f.linear2(s[kActive]);
  }
  if (due(kSum)) s[kSum] = s[kResidual] + s[kOut];
  if (due(kNormed) && !norm_first()) s[kNormed] = (*own)(s[kSum]);
}

// All parts from one on, and the logits.
void Dissection::finish(Run& r, size_t from) const {
  for (size_t i = from; i < r.parts.size(); ++i) {
    Sublayer& s = r.parts[i];
    const bool first_of_decoder = s.part == Part::decoder_self && s.layer == 0;
    if (first_of_decoder) {
      const Var& y = r.parts[i - 1].result();
      r.memory = network_.encoder.norm ? (*network_.encoder.norm)(y) : y;
    }
    s[kX] = i == 0 ? r.source : first_of_decoder ? r.target : r.parts[i - 1].result();
    compute(s, r.memory, level(kX));
  }
  r.logits = linear(r.parts.back().result(), network_.output_weight, network_.output_bias);
}

Run Dissection::run() const {
  Run r;
  const nn::Seq2SeqBatch words = batch_of(source_, target_);
  r.source = embed_source(network_, words.source);
  r.target = network_.embed_target(words.target_in);
  for (int64_t layer = 0; layer < network_.config.num_layers; ++layer)
    for (Part part : {Part::encoder_self, Part::encoder_ff}) r.parts.push_back({part, layer});
  for (int64_t layer = 0; layer < network_.config.num_layers; ++layer)
    for (Part part : {Part::decoder_self, Part::cross, Part::decoder_ff}) r.parts.push_back({part, layer});
  r.parts.push_back({Part::output, 0});
  finish(r, 0);
  r.probabilities = softmax(r.logits);
  for (size_t t = 0; t < target_.size(); ++t) {
    Var row = reshape(select(r.probabilities, 0, static_cast<int64_t>(t)), {r.logits.size(2)});
    r.losses.push_back(-log(select(row, 0, target_[t])));
  }
  return r;
}

std::vector<std::vector<double>> Dissection::losses(const Run& base, size_t part,
                                                    const std::vector<Field>& fields, const Tensor& variants,
                                                    bool hold_relus) const {
  NoGrad guard;
  const int64_t n = variants.dims() == 4 ? variants.size(0) : variants.size(1);
  Run r;
  r.source = copies(base.source, n);
  r.target = copies(base.target, n);
  r.memory = copies(base.memory, n);
  for (const Sublayer& s : base.parts) {
    r.parts.push_back({s.part, s.layer});
    if (!hold_relus || !s[kHidden].defined()) continue;
    Tensor on = s[kHidden].value().clone();
    for (int64_t i = 0; i < on.numel(); ++i) on.f64()[i] = on.f64()[i] > 0;
    r.parts.back().pattern = on;
  }
  Sublayer& s = r.parts[part];
  for (int f = 0; f < kFields; ++f)
    s.at[static_cast<size_t>(f)] = copies(base.parts[part].at[static_cast<size_t>(f)], n);
  for (Field f : fields) s[f] = variants;
  compute(s, r.memory, level(fields.back()));
  // What follows takes its input from the part before.
  finish(r, part + 1);
  return exact_losses(r.logits.value(), target_);
}

std::vector<Station> Dissection::stations(const Sublayer& s) const {
  if (s.part == Part::output) {
    std::vector<Station> out = {{"x", "what comes in", {kToQuery}}};
    if (s[kNormQuery].defined()) out.push_back({"n", "normalised", {kNormQuery}});
    return out;
  }
  std::vector<Station> out;
  auto add = [&](const char* name, const char* title, std::vector<Field> fields) {
    std::vector<Field> there;
    for (Field f : fields)
      if (s[f].defined()) there.push_back(f);
    if (!there.empty()) out.push_back({name, title, there});
  };
  if (s.part == Part::cross) {
    add("m", "what the encoder made of the source", {kToKey, kToValue});
    add("x", "what comes in", {kResidual, kToQuery});
  } else {
    add("x", "what comes in", {kResidual, kToQuery, kToKey, kToValue});
  }
  add("n", "normalised", {kNormQuery, kNormKey, kNormValue});
  add("q", "queries", {kQ});
  add("k", "keys", {kK});
  add("v", "values", {kV});
  add("e", "scores", {kScores});
  add("alpha", "weights", {kWeights});
  add("o", "heads, side by side", {kMixed});
  add("u", "hidden layer", {kHidden});
  add("r", "after the activation", {kActive});
  add("w", attends(s.part) ? "through W_O" : "out of the hidden layer", {kOut});
  add("s", "sum with the residual", {kSum});
  add("y", "normalised", {kNormed});
  return out;
}

double Dissection::network_loss() const {
  NoGrad guard;
  return network_.loss(batch_of(source_, target_)).nll;
}

}  // namespace lens::transformer
