// What `lens flow` computes of a Transformer: gradients at the encoder's states, and at the words it reads.

#include <fmt/core.h>

#include <cmath>

#include <gradus/ops.h>

#include "flow.h"
#include "flow_check.h"
#include "norms.h"
#include "sentence/dissection.h"

namespace lens {
namespace {

using namespace gradus;

// The words' vectors with their positions, [S, B, E].
Var words_of(const nn::TransformerSeq2Seq& network, const std::vector<int32_t>& source) {
  const int64_t S = static_cast<int64_t>(source.size());
  Var x = network.source_embedding(Tensor::from_ids({S, 1}, source)) *
          std::sqrt(static_cast<double>(network.config.d_model));
  return network.source_positions ? (*network.source_positions)(x, 0) : x;
}

// Logits [T, B, V]. The layers are put together from their parts, so that keys can come from other numbers than
// values do.
Var decoded(const nn::TransformerSeq2Seq& network, const std::vector<int32_t>& target, const Var& keys,
            const Var& values) {
  const int64_t T = static_cast<int64_t>(target.size()), B = keys.size(1);
  std::vector<int32_t> in = {nn::kBos};
  in.insert(in.end(), target.begin(), target.end() - 1);
  Var x = expand(network.embed_target(Tensor::from_ids({T, 1}, in)), {T, B, network.config.d_model});
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

// One after the other, and what they add up to.
struct MeasuredTransformer {
  std::vector<Flow> states, words;
  FlowChecks checks;

  void add(const nn::TransformerSeq2Seq& network, const std::vector<int32_t>& source,
           const std::vector<int32_t>& target, size_t checked, const Subject* by_word = nullptr) {
    TransformerFlow g = transformer_gradients(network, source, target);
    if (checked > 0)
      checks.add(check_transformer(network, source, target, g, spread(source.size(), checked)));
    auto lengths = [&](const FlowGradients& x) {
      return lengths_of(by_word ? by_words(x, by_word->source.word_of, by_word->target.word_of) : x);
    };
    states.push_back(lengths(g.states));
    words.push_back(lengths(g.words));
  }

  FlowResult result(const char* weights, int64_t length) const {
    return {.weights = weights,
            .cell = "transformer",
            .bidirectional = false,
            .length = length,
            .with = summarize(states),
            .without = summarize(words),
            .checks = checks};
  }
};

}  // namespace

TransformerFlow transformer_gradients(const nn::TransformerSeq2Seq& network,
                                      const std::vector<int32_t>& source,
                                      const std::vector<int32_t>& target) {
  Var words = words_of(network, source), states = network.encoder(words);
  Var keys = tap(states, "states to score"), values = tap(states, "states to mix");
  Var logits = decoded(network, target, keys, values);
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
  const Tensor x = words_of(network, source).value(), states = network.encoder(Var(x)).value();
  return check_items(items, network.config.activation == "relu", [&](const std::vector<Column>& columns) {
    NoGrad own;
    // Items of one call are mostly of one kind: the encoder is run again only where one of its words is moved.
    bool encodes = false;
    for (const Column& c : columns) encodes = encodes || c.item->seen == Seen::encoder;
    Var read = encodes ? network.encoder(columns_of(x, columns, Seen::encoder))
                       : expand(Var(states), {x.size(0), static_cast<int64_t>(columns.size()), x.size(2)});
    Var still = Var(Tensor::zeros(states.shape(), DType::f64));
    Tensor logits = decoded(network, target, read + columns_of(still.value(), columns, Seen::score),
                            read + columns_of(still.value(), columns, Seen::value))
                        .value();
    std::vector<std::vector<double>> out(columns.size());
    for (size_t b = 0; b < columns.size(); ++b)
      for (size_t t = 0; t < target.size(); ++t)
        out[b].push_back(
            exact_loss(logits.row(static_cast<int64_t>(t)).row(static_cast<int64_t>(b)), target[t]));
    return out;
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
  MeasuredTransformer measured;
  for (int seed = 1; seed <= asked.seeds; ++seed) {
    Rng rng(static_cast<uint64_t>(seed));
    Rng own = rng.split(1), draw = rng.split(3);
    std::vector<int32_t> source = random_words(length - 1, network.config.source_vocabulary, draw);
    std::vector<int32_t> target = random_words(asked.steps, network.config.target_vocabulary, draw);
    source.push_back(nn::kEos);
    target.back() = nn::kEos;
    const size_t checked = words_to_check(asked, seed, source.size());
    if (!fresh) {
      measured.add(network, source, target, checked);
      continue;
    }
    nn::TransformerSeq2Seq anew(network.config, own);
    nn::to(anew, DType::f64);
    measured.add(anew, source, target, checked);
  }
  return measured.result(fresh ? "fresh" : "trained", length);
}

FlowResult transformer_sentence(const Subject& subject) {
  MeasuredTransformer measured;
  std::vector<int32_t> target = subject.target_ids;
  target.push_back(nn::kEos);
  measured.add(*subject.model.transformer(), subject.source_ids, target, subject.source_ids.size(), &subject);
  FlowResult out = measured.result("trained", static_cast<int64_t>(subject.source.words.size()));
  out.source = subject.source.words;
  out.target = subject.target.words;
  return out;
}

}  // namespace lens
