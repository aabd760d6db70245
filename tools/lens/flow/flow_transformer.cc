// What `lens flow` computes of a Transformer: gradients at the encoder's states, and at the words it reads.

#include <fmt/core.h>

#include <gradus/ops.h>

#include "flow.h"
#include "flow_check.h"
#include "norms.h"
#include "sentence/dissection.h"
#include "transformer/dissection.h"

namespace lens {
namespace {

using namespace gradus;

// Logits [T, B, V] of target words [T, 1]. The layers are put together from their parts, so that keys can come
// from other numbers than values do.
Var decoded(const nn::TransformerSeq2Seq& network, const Tensor& target_in, const Var& keys,
            const Var& values) {
  Var x = expand(network.embed_target(target_in), {target_in.size(0), keys.size(1), network.config.d_model});
  for (const nn::TransformerDecoderLayer& layer : network.decoder.layers) {
    auto around = [&](const nn::LayerNorm& normed, auto&& part) {
      x = layer.norm_first ? x + part(normed(x)) : normed(x + part(x));
    };
    around(layer.norm1,
           [&](const Var& v) { return layer.self_attn(v, v, v, {.causal = network.config.causal}).output; });
    around(layer.norm2, [&](const Var& v) { return layer.multihead_attn(v, keys, values).output; });
    around(layer.norm3, layer.feed_forward);
  }
  if (network.decoder.norm) x = (*network.decoder.norm)(x);
  return linear(x, network.output_weight, network.output_bias);
}

// x [S, 1, E] in a column for each item, moved where the item's word is seen this way.
Var columns_of(const Tensor& x, const std::vector<Column>& columns, Seen way) {
  const int64_t S = x.size(0), B = static_cast<int64_t>(columns.size()), E = x.size(2);
  Tensor shift = Tensor::zeros({S, B, E}, DType::f64);
  for (size_t b = 0; b < columns.size(); ++b) {
    const Item& item = *columns[b].item;
    const bool of_states = item.seen != Seen::encoder && way != Seen::encoder;
    if (item.seen != way && !(of_states && item.seen == Seen::everywhere)) continue;
    double* out = shift.f64() + (static_cast<int64_t>(item.word) * B + static_cast<int64_t>(b)) * E;
    for (int64_t e = 0; e < E; ++e) out[e] = columns[b].by * item.direction[static_cast<size_t>(e)];
  }
  return expand(Var(x), {S, B, E}) + Var(shift);
}

void measure(Measured& measured, const nn::TransformerSeq2Seq& network, const std::vector<int32_t>& source,
             const std::vector<int32_t>& target, size_t checked) {
  TransformerFlow g = transformer_gradients(network, source, target);
  if (checked > 0)
    measured.checks.add(check_transformer(network, source, target, g, spread(source.size(), checked)));
  measured.with.push_back(measured.lengths(g.states));
  measured.without.push_back(measured.lengths(g.words));
}

}  // namespace

TransformerFlow transformer_gradients(const nn::TransformerSeq2Seq& network,
                                      const std::vector<int32_t>& source,
                                      const std::vector<int32_t>& target) {
  const nn::Seq2SeqBatch pair = batch_of(source, target);
  Var words = transformer::embed_source(network, pair.source), states = network.encoder(words);
  Var keys = tap(states, "states to score"), values = tap(states, "states to mix");
  Var logits = decoded(network, pair.target_in, keys, values);
  auto rows = [&] { return Tensor::zeros({states.size(0), states.size(2)}, DType::f64); };
  TransformerFlow out;
  out.states.value = rows();
  out.states.score = rows();
  for (size_t t = 0; t < target.size(); ++t) {
    Var row = reshape(select(logits, 0, static_cast<int64_t>(t)), {1, logits.size(2)});
    Var loss = cross_entropy(row, Tensor::from_ids({1}, {target[t]})).loss;
    Gradients grads = backward(loss, {.keep = {words, states, keys, values}, .retain_graph = true});
    for (FlowGradients* g : {&out.states, &out.words}) {
      g->losses.push_back(loss.item());
      g->steps.push_back(rows());
      add_gradient(g->steps.back(), grads, g == &out.states ? states : words);
    }
    add_gradient(out.states.value, grads, values);
    add_gradient(out.states.score, grads, keys);
  }
  return out;
}

FlowChecks check_transformer(const nn::TransformerSeq2Seq& network, const std::vector<int32_t>& source,
                             const std::vector<int32_t>& target, const TransformerFlow& g,
                             const std::vector<size_t>& words) {
  NoGrad guard;
  double loss = 0;
  for (double x : g.states.losses) loss += x;
  std::vector<Item> items;
  for (const FlowGradients* of : {&g.states, &g.words}) {
    const Seen seen = of == &g.states ? Seen::everywhere : Seen::encoder;
    const Tensor whole = of->whole();
    for (size_t j : words) {
      items.push_back(item_of(whole, j, seen, -1, loss));
      for (size_t t = 0; t < target.size(); ++t)
        items.push_back(item_of(of->steps[t], j, seen, static_cast<int64_t>(t), of->losses[t]));
      if (of != &g.states) continue;
      items.push_back(item_of(of->value, j, Seen::value, -1, loss));
      items.push_back(item_of(of->score, j, Seen::score, -1, loss));
    }
  }
  const nn::Seq2SeqBatch pair = batch_of(source, target);
  const Tensor x = transformer::embed_source(network, pair.source).value(),
               states = network.encoder(Var(x)).value();
  return check_items(items, network.config.activation == "relu", [&](const std::vector<Column>& columns) {
    NoGrad own;
    // Items of one call are mostly of one kind: the encoder is run again only where one of its words is moved.
    bool encodes = false;
    for (const Column& c : columns) encodes = encodes || c.item->seen == Seen::encoder;
    Var read = encodes ? network.encoder(columns_of(x, columns, Seen::encoder))
                       : expand(Var(states), {x.size(0), static_cast<int64_t>(columns.size()), x.size(2)});
    const Tensor still = Tensor::zeros(states.shape(), DType::f64);
    return exact_losses(decoded(network, pair.target_in, read + columns_of(still, columns, Seen::score),
                                read + columns_of(still, columns, Seen::value))
                            .value(),
                        target);
  });
}

std::string transformer_setup(const nn::TransformerConfig& c, const FlowAsked& asked) {
  return fmt::format(
      "{} fresh network{}: {} layers in encoder and decoder, {} units, {} heads, norm {}, {} positions, as "
      "their training starts; the target is {} random words, whose losses are added",
      asked.seeds, asked.seeds == 1 ? "" : "s", c.num_layers, c.d_model, c.num_heads,
      c.norm_first ? "first" : "last", c.positions, asked.steps);
}

FlowResult transformer_random(const nn::TransformerSeq2Seq& network, bool fresh, int64_t length,
                              const FlowAsked& asked) {
  Measured measured;
  for (int seed = 1; seed <= asked.seeds; ++seed) {
    Rng rng(static_cast<uint64_t>(seed));
    Rng own = rng.split(1), draw = rng.split(3);
    const std::vector<int32_t> source = random_sentence(length, network.config.source_vocabulary, draw),
                               target = random_sentence(asked.steps, network.config.target_vocabulary, draw);
    const size_t checked = words_to_check(asked, seed, source.size());
    if (!fresh) {
      measure(measured, network, source, target, checked);
      continue;
    }
    nn::TransformerSeq2Seq anew(network.config, own);
    nn::to(anew, DType::f64);
    measure(measured, anew, source, target, checked);
  }
  return measured.result({.weights = fresh ? "fresh" : "trained", .cell = "transformer", .length = length});
}

FlowResult transformer_sentence(const Subject& subject) {
  Measured measured{&subject};
  measure(measured, *subject.model.transformer(), subject.source_ids, with_end(subject.target_ids),
          subject.source_ids.size());
  return measured.result({.weights = "trained", .cell = "transformer"});
}

}  // namespace lens
