// The graph of a Transformer's step. The network computes all words and heads at once; here each has operations
// of its own, so that edges tell which word's gradient goes where, and through which head.

#include <fmt/core.h>

#include <cmath>

#include <gradus/ops.h>
#include <gradus/numeric.h>

#include "graph.h"

namespace lens {
namespace {

using namespace gradus;
namespace tf = transformer;

using Rows = std::vector<Var>;  // [1, E], a word each

// The scope of a part at a word: "encoder.j0.self_l1".
std::string path_of(bool decoder, size_t at, const std::string& part) {
  return fmt::format("{}.{}{}.{}", decoder ? "decoder" : "encoder", decoder ? 't' : 'j', at, part);
}

std::string part_name(tf::Part part, int64_t layer) {
  const char* name = part == tf::Part::cross ? "cross" : tf::attends(part) ? "self" : "ff";
  return part == tf::Part::output ? "output" : fmt::format("{}_l{}", name, layer);
}

struct Walk {
  const tf::Dissection& d;
  const nn::TransformerSeq2Seq& network = d.network();

  template <class F>
  static Var within(const std::string& path, F&& compute) {
    Scope scope(path);
    return compute();
  }

  static Var row(const Var& x) { return reshape(x, {1, x.numel()}); }
  static Tensor id(int32_t word) { return Tensor::from_ids({1, 1}, {word}); }

  // What heads find for one word: of its queries [1, E], and keys and values [1, 2E] of each word that it may
  // look at.
  static Var heads(const nn::MultiheadAttention& a, const Var& q, const Rows& keys_values) {
    const Var seen = concat(keys_values, 0);
    const int64_t E = a.embed_dim, n = E / a.num_heads;
    Rows found;
    for (int64_t h = 0; h < a.num_heads; ++h) {
      Scope scope(fmt::format("head{}", h + 1));
      Var query = slice(q, 1, h * n, (h + 1) * n), key = slice(seen, 1, h * n, (h + 1) * n);
      Var weights = softmax(matmul(query, transpose(key, 0, 1)) * a.scale);
      found.push_back(matmul(weights, slice(seen, 1, E + h * n, E + (h + 1) * n)));
    }
    return a.out_proj(concat(found, 1));
  }

  // x + part(norm(x)), or norm(x + part(x)).
  template <class F>
  Var around(const Var& x, const nn::LayerNorm& norm, F&& part) const {
    return d.norm_first() ? x + part(norm(x)) : norm(x + part(x));
  }

  void self_attention(Rows& x, const nn::MultiheadAttention& a, const nn::LayerNorm& norm, bool decoder,
                      int64_t layer) const {
    Rows projected, seen;
    for (size_t i = 0; i < x.size(); ++i) {
      Scope scope(path_of(decoder, i, fmt::format("qkv_l{}", layer)));
      projected.push_back(linear(d.norm_first() ? norm(x[i]) : x[i], a.in_proj_weight, a.in_proj_bias));
      seen.push_back(slice(projected.back(), 1, a.embed_dim, 3 * a.embed_dim));
    }
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = within(path_of(decoder, i, part_name(tf::Part::encoder_self, layer)), [&] {
        Rows visible = seen;
        if (decoder && d.causal()) visible.resize(i + 1);
        Var sum = x[i] + heads(a, slice(projected[i], 1, 0, a.embed_dim), visible);
        return d.norm_first() ? sum : norm(sum);
      });
  }

  void feed_forward(Rows& x, const nn::FeedForward& f, const nn::LayerNorm& norm, bool decoder,
                    int64_t layer) const {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = within(path_of(decoder, i, part_name(tf::Part::encoder_ff, layer)), [&] {
        return around(x[i], norm, [&](const Var& v) {
          Var hidden = f.linear1(v);
          return f.linear2(f.gelu ? gelu(hidden) : relu(hidden));
        });
      });
  }

  Rows encoded() const {
    Rows x;
    const double scale = std::sqrt(static_cast<double>(network.config.d_model));
    for (size_t j = 0; j < d.source().size(); ++j)
      x.push_back(within(path_of(false, j, "word"), [&] {
        Var word = network.source_embedding(id(d.source()[j])) * scale;
        return row(network.source_positions ? (*network.source_positions)(word, static_cast<int64_t>(j))
                                            : word);
      }));
    for (size_t l = 0; l < network.encoder.layers.size(); ++l) {
      const nn::TransformerEncoderLayer& layer = network.encoder.layers[l];
      self_attention(x, layer.self_attn, layer.norm1, false, static_cast<int64_t>(l));
      feed_forward(x, layer.feed_forward, layer.norm2, false, static_cast<int64_t>(l));
    }
    if (network.encoder.norm)
      for (size_t j = 0; j < x.size(); ++j)
        x[j] = within(path_of(false, j, "norm"), [&] { return (*network.encoder.norm)(x[j]); });
    return x;
  }

  // The loss of word t: of the ones after it, only where it sees them.
  Var loss(size_t t) const {
    const Rows memory = encoded();
    Rows x;
    for (size_t i = 0; i < (d.causal() ? t + 1 : d.target().size()); ++i)
      x.push_back(within(path_of(true, i, "word"), [&] {
        return row(network.embed_target(id(i == 0 ? nn::kBos : d.target()[i - 1]), static_cast<int64_t>(i)));
      }));
    for (size_t l = 0; l < network.decoder.layers.size(); ++l) {
      const nn::TransformerDecoderLayer& layer = network.decoder.layers[l];
      const int64_t number = static_cast<int64_t>(l);
      self_attention(x, layer.self_attn, layer.norm1, true, number);
      Rows read;
      for (size_t j = 0; j < memory.size(); ++j)
        read.push_back(within(path_of(false, j, fmt::format("kv_l{}", l)),
                              [&] { return layer.multihead_attn.project_memory(memory[j]); }));
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = within(path_of(true, i, part_name(tf::Part::cross, number)), [&] {
          return around(x[i], layer.norm2, [&](const Var& v) {
            return heads(layer.multihead_attn, layer.multihead_attn.project_queries(v), read);
          });
        });
      feed_forward(x, layer.feed_forward, layer.norm3, true, number);
    }
    return within(path_of(true, t, "output"), [&] {
      const Var y = network.decoder.norm ? (*network.decoder.norm)(x[t]) : x[t];
      const Var p = softmax(linear(y, network.output_weight, network.output_bias));
      return -log(select(reshape(p, {p.numel()}), 0, d.target()[t]));
    });
  }
};

// "encoder.j12.self_l1.head3": the box of it. Rows top down; what the decoder reads of the encoder comes last.
GraphModule box_of(const std::string& scope) {
  const size_t first = scope.find('.'), second = scope.find('.', first + 1),
               third = scope.find('.', second + 1);
  const std::string part = scope.substr(second + 1, third - second - 1);
  GraphModule m{.path = scope.substr(0, third), .title = part, .decoder = scope.starts_with("decoder")};
  m.column = std::stoll(scope.substr(first + 2, second - first - 2));
  const size_t at = part.find("_l");
  if (at == std::string::npos) {
    m.row = part == "word" ? 0 : 1000;
    return m;
  }
  const int layer = std::stoi(part.substr(at + 2));
  const std::string name = part.substr(0, at);
  struct Kind {
    const char *name, *title;
    int row;
  };
  for (const Kind& kind : {Kind{"qkv", "q, k, v", 1},
                           {"self", "self-attention", 2},
                           {"cross", "cross-attention", 3},
                           {"ff", "feed-forward", 4},
                           {"kv", "keys, values", 1001}})
    if (name == kind.name) {
      m.title = fmt::format("{} {}", kind.title, layer + 1);
      m.row = kind.row + (kind.row > 1000 ? layer : 4 * layer);
    }
  return m;
}

}  // namespace

StepGraph trace_step(const tf::Dissection& d, const tf::Trace& known, size_t t) {
  KeepValues keep;
  const Var loss = Walk{d}.loss(t);
  StepGraph out = graph_of(loss, t, box_of);
  const tf::Gradients& gradients = known.steps.at(t);
  double off = std::abs(loss.item() - known.run.losses[t].item());
  for (const Trace::Node& n : out.trace.nodes)
    for (size_t j = 0; j < d.source().size(); ++j)
      if (n.op == "reshape" && n.shape.dims() == 2 && n.scope == path_of(false, j, "word"))
        off = worse(off, max_abs_difference(n.grad, gradients.source.row(static_cast<int64_t>(j))));
  if (!(off <= 1e-9))
    fail("lens", fmt::format("word by word, the Transformer's loss or its gradients are off by {:.1e}", off));
  const tf::Spot spot = tf::strongest(known, static_cast<int64_t>(t));
  const tf::Sublayer& s = known.run.parts[spot.part];
  out.shown =
      path_of(tf::in_decoder(s.part), static_cast<size_t>(tf::row_of(known, static_cast<int64_t>(t), spot)),
              part_name(s.part, s.layer));
  out.shown_head = spot.head;
  return out;
}

}  // namespace lens
