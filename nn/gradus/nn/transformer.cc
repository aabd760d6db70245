#include <gradus/nn/transformer.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/operands.h>

namespace gradus::nn {
namespace {

// One part of a layer with the way around it.
template <class Layer, class F>
Var around(const Layer& layer, const LayerNorm& norm, const Var& x, F&& part) {
  return layer.norm_first ? x + layer.dropout(part(norm(x))) : norm(x + layer.dropout(part(x)));
}

MultiheadAttentionOptions attention_options(const TransformerOptions& o) {
  return {.dropout = o.dropout, .temperature = o.temperature};
}

std::string layer_name(size_t i) { return "layers." + std::to_string(i); }

// All layers in turn; only the last one's weights are made, and only when wanted.
template <class F>
TransformerDecoderOutput through(const TransformerDecoder& decoder, const Var& x,
                                 const TransformerDecoderOptions& o, F&& layer) {
  Scope scope("decoder");
  if (decoder.layers.empty()) fail("TransformerDecoder", "has no layers any more", "moved from?");
  TransformerDecoderOutput out{x, {}};
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    Scope layer_scope(layer_name(i));
    bool last = i + 1 == decoder.layers.size();
    out = layer(i, out.output,
                {.memory_mask = o.memory_mask, .weights = o.weights && last, .causal = o.causal});
  }
  if (decoder.norm) out.output = (*decoder.norm)(out.output);
  return out;
}

}  // namespace

FeedForward::FeedForward(int64_t d_model, const RngInput& rng, const TransformerOptions& o)
    : linear1(d_model, o.dim_feedforward, rng, {}),
      linear2(o.dim_feedforward, d_model, rng, {}),
      dropout(o.dropout, rng.caller()),
      gelu(o.activation == "gelu") {
  At at(rng.caller());
  if (!gelu && o.activation != "relu")
    unknown_name("Transformer", "activation", o.activation, {"relu", "gelu"});
}

Var FeedForward::operator()(const Input& x) const {
  At at(x.caller());
  Scope scope("feed_forward");
  Var hidden = linear1(x);
  return linear2(dropout(gelu ? gradus::gelu(hidden) : relu(hidden)));
}

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead, const RngInput& rng,
                                                 const TransformerOptions& o)
    : self_attn(d_model, nhead, rng, attention_options(o)),
      feed_forward(d_model, rng, o),
      norm1(d_model, o.layer_norm_eps, rng.caller()),
      norm2(d_model, o.layer_norm_eps, rng.caller()),
      dropout(o.dropout, rng.caller()),
      norm_first(o.norm_first) {}

Var TransformerEncoderLayer::operator()(const Input& x, const TransformerEncoderOptions& o) const {
  At at(x.caller());
  Var y = around(*this, norm1, x, [&](const Var& v) {
    return self_attn(v, v, v, {.mask = o.mask, .causal = o.causal}).output;
  });
  return around(*this, norm2, y, feed_forward);
}

Var TransformerEncoder::operator()(const Input& x, const TransformerEncoderOptions& o) const {
  At at(x.caller());
  Scope scope("encoder");
  if (layers.empty()) fail("TransformerEncoder", "has no layers any more", "moved from?");
  Var y = x;
  for (size_t i = 0; i < layers.size(); ++i) {
    Scope layer_scope(layer_name(i));
    y = layers[i](y, o);
  }
  return norm ? (*norm)(y) : y;
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t nhead, const RngInput& rng,
                                                 const TransformerOptions& o)
    : self_attn(d_model, nhead, rng, attention_options(o)),
      multihead_attn(d_model, nhead, rng, attention_options(o)),
      feed_forward(d_model, rng, o),
      norm1(d_model, o.layer_norm_eps, rng.caller()),
      norm2(d_model, o.layer_norm_eps, rng.caller()),
      norm3(d_model, o.layer_norm_eps, rng.caller()),
      dropout(o.dropout, rng.caller()),
      norm_first(o.norm_first) {}

TransformerDecoderOutput TransformerDecoderLayer::operator()(const Input& x, const Var& memory,
                                                             const TransformerDecoderOptions& o) const {
  At at(x.caller());
  Tensor weights;
  Var y =
      around(*this, norm1, x, [&](const Var& v) { return self_attn(v, v, v, {.causal = o.causal}).output; });
  y = around(*this, norm2, y, [&](const Var& v) {
    auto out = multihead_attn(v, memory, memory, {.mask = o.memory_mask, .weights = o.weights});
    weights = out.weights;
    return out.output;
  });
  return {around(*this, norm3, y, feed_forward), weights};
}

TransformerDecoderOutput TransformerDecoderLayer::step(const Input& x, TransformerLayerCache& cache,
                                                       const TransformerDecoderOptions& o) const {
  At at(x.caller());
  Tensor weights;
  Var y = around(*this, norm1, x, [&](const Var& v) { return self_attn.step(v, cache.words); });
  y = around(*this, norm2, y, [&](const Var& v) {
    auto out = multihead_attn.attend(v, cache.memory, {.mask = o.memory_mask, .weights = o.weights});
    weights = out.weights;
    return out.output;
  });
  return {around(*this, norm3, y, feed_forward), weights};
}

TransformerDecoderOutput TransformerDecoder::operator()(const Input& x, const Var& memory,
                                                        const TransformerDecoderOptions& o) const {
  At at(x.caller());
  return through(*this, x, o, [&](size_t i, const Var& y, const TransformerDecoderOptions& own) {
    return layers[i](y, memory, own);
  });
}

std::vector<TransformerLayerCache> TransformerDecoder::start(const Input& memory) const {
  At at(memory.caller());
  std::vector<TransformerLayerCache> caches;
  for (const TransformerDecoderLayer& layer : layers)
    caches.push_back({{}, layer.multihead_attn.project_memory(memory).value()});
  return caches;
}

TransformerDecoderOutput TransformerDecoder::step(const Input& x, std::vector<TransformerLayerCache>& caches,
                                                  const TransformerDecoderOptions& o) const {
  At at(x.caller());
  if (caches.size() != layers.size())
    refuse("TransformerDecoder", "needs what start() returned, a cache for each of {} layers: {}",
           layers.size(), caches.size());
  return through(*this, x, o, [&](size_t i, const Var& y, const TransformerDecoderOptions& own) {
    return layers[i].step(y, caches[i], own);
  });
}

}  // namespace gradus::nn
