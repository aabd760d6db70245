// What `lens flow` computes: gradients at the source words, in networks fresh or trained, and lines made of
// their lengths.

#include "flow.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <gradus/nn/init.h>
#include <gradus/ops.h>

#include "commands.h"
#include "sentence/dissection.h"

namespace lens {
namespace {

using namespace gradus;

constexpr size_t kCheckedWords = 8;  // of a setting that is not checked in full

void accumulate(const Tensor& sum, const Gradients& grads, const Var& x, int64_t row = 0,
                int64_t column = 0) {
  if (!x.defined() || !grads.contains(x)) return;
  Tensor g = grads[x];
  double* out = sum.f64() + row * sum.size(1) + column;
  for (int64_t i = 0; i < g.numel(); ++i) out[i] += g.f64()[i];
}

// What arrived at states of both directions, a row a word.
void accumulate_states(const Tensor& sum, const Gradients& grads, const std::vector<Var>& forward,
                       const std::vector<Var>& backward) {
  int64_t H = sum.size(1) / (backward.empty() ? 1 : 2);
  for (size_t j = 0; j < forward.size(); ++j) {
    accumulate(sum, grads, forward[j], static_cast<int64_t>(j));
    if (!backward.empty()) accumulate(sum, grads, backward[j], static_cast<int64_t>(j), H);
  }
}

std::vector<double> row_lengths(const Tensor& x) {
  std::vector<double> out;
  int64_t n = x.size(-1);
  for (int64_t r = 0; r < x.numel() / n; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < n; ++c) sum += x.at(r * n + c) * x.at(r * n + c);
    out.push_back(std::sqrt(sum));
  }
  return out;
}

std::vector<Var> states_of(const Reading& r) {
  std::vector<Var> out = r.forward;
  out.insert(out.end(), r.backward.begin(), r.backward.end());
  return out;
}

Tensor empty_rows(const Reading& r) {
  return Tensor::zeros({r.annotations.size(0), r.annotations.size(2)}, DType::f64);
}

FlowGradients with_attention(const nn::Seq2Seq& network, const std::vector<int32_t>& source,
                             const std::vector<int32_t>& target) {
  Dissection d(network, source, {target.begin(), target.end() - 1});
  Reading r;
  std::vector<Step> steps;
  d.run(r, steps);
  BackwardOptions options{.keep = states_of(r), .retain_graph = true};
  for (const Step& s : steps)
    options.keep.insert(options.keep.end(), {s.value_annotations, s.score_annotations});
  for (auto* links : {&r.forward_link, &r.backward_link})
    options.keep.insert(options.keep.end(), links->begin(), links->end());
  options.keep.push_back(r.forward_start);
  if (r.backward_start.defined()) options.keep.push_back(r.backward_start);
  FlowGradients out{{}, empty_rows(r), empty_rows(r), empty_rows(r), {}};
  for (const Step& step : steps) {
    Gradients grads = backward(step.loss, options);
    out.losses.push_back(step.loss.item());
    out.steps.push_back(empty_rows(r));
    accumulate_states(out.steps.back(), grads, r.forward, r.backward);
    for (const Step& s : steps) {
      accumulate(out.value, grads, s.value_annotations);
      accumulate(out.score, grads, s.score_annotations);
    }
    accumulate_states(out.recurrent, grads, r.forward_link, r.backward_link);
    accumulate(out.recurrent, grads, r.forward_start, r.annotations.size(0) - 1);
    accumulate(out.recurrent, grads, r.backward_start, 0, r.annotations.size(2) / 2);
  }
  return out;
}

FlowGradients without_attention(const nn::Seq2Seq& network, FlowMode mode, const std::vector<int32_t>& source,
                                const std::vector<int32_t>& target) {
  Reading r = read_source(network.encoder, source);
  size_t S = source.size();
  if (mode == FlowMode::cut) {
    std::vector<Var> annotations;
    for (size_t j = 0; j < S; ++j) {
      Var f = j + 1 == S ? r.forward[j] : stop_gradient(r.forward[j]);
      if (r.backward.empty())
        annotations.push_back(f);
      else
        annotations.push_back(concat({f, j == 0 ? r.backward[j] : stop_gradient(r.backward[j])}, -1));
    }
    // In a residual encoder an annotation is its state and something from below, which has no part in this.
    Var states = stack(annotations, 0);
    r.encoded.annotations = states + stop_gradient(r.annotations - states);
  }
  int64_t T = static_cast<int64_t>(target.size());
  std::vector<int32_t> in = target;
  in.insert(in.begin(), nn::kBos);
  in.pop_back();
  Var readout = network.decoder->teacher_forced(Tensor::from_ids({T, 1}, in), r.encoded).readout;
  Var logits = network.output(reshape(readout, {T, readout.size(-1)}));
  FlowGradients out;
  for (int64_t t = 0; t < T; ++t) {
    Var loss =
        cross_entropy(slice(logits, 0, t, t + 1), Tensor::from_ids({1}, {target[static_cast<size_t>(t)]}))
            .loss;
    out.losses.push_back(loss.item());
    out.steps.push_back(empty_rows(r));
    accumulate_states(out.steps.back(), backward(loss, {.keep = states_of(r), .retain_graph = true}),
                      r.forward, r.backward);
  }
  return out;
}

std::vector<int32_t> words(int64_t count, int64_t vocabulary, Rng& rng) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<int32_t>(nn::kEos + 1 + rng.below(vocabulary - nn::kEos - 1)));
  return out;
}

// Words spread evenly, the first and the last among them.
std::vector<size_t> spread(size_t words, size_t most) {
  std::vector<size_t> out;
  size_t n = std::min(words, most);
  for (size_t i = 0; i < n; ++i) out.push_back(n == 1 ? 0 : i * (words - 1) / (n - 1));
  return out;
}

// Measures one network on one pair, and checks it.
Flow measure(const nn::Seq2Seq& network, FlowMode mode, const std::vector<int32_t>& source,
             const std::vector<int32_t>& target, size_t checked, FlowChecks& checks) {
  FlowGradients g = flow_gradients(network, mode, source, target);
  if (checked > 0) checks.add(check_flow(network, mode, source, target, g, spread(source.size(), checked)));
  return lengths_of(g);
}

size_t words_to_check(const FlowAsked& asked, int seed, int64_t length) {
  if (asked.thorough) return static_cast<size_t>(length);
  return seed == 1 ? kCheckedWords : 0;
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  size_t n = x.size();
  return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

FlowResult empty_result(const nn::Seq2SeqConfig& config, const char* weights, int64_t length) {
  FlowResult out;
  out.weights = weights;
  out.cell = nn::cell_name(config.rnn.cell);
  out.bidirectional = config.bidirectional();
  out.length = length;
  return out;
}

}  // namespace

FlowGradients flow_gradients(const nn::Seq2Seq& network, FlowMode mode, const std::vector<int32_t>& source,
                             const std::vector<int32_t>& target) {
  return mode == FlowMode::with ? with_attention(network, source, target)
                                : without_attention(network, mode, source, target);
}

Tensor FlowGradients::whole() const {
  Tensor out = steps.at(0).clone();
  for (size_t t = 1; t < steps.size(); ++t)
    for (int64_t i = 0; i < out.numel(); ++i) out.f64()[i] += steps[t].f64()[i];
  return out;
}

Flow lengths_of(const FlowGradients& g) {
  Flow out{row_lengths(g.whole()), {}, {}, {}, {}};
  for (const Tensor& step : g.steps) out.steps.push_back(row_lengths(step));
  if (!g.value.defined()) return out;
  out.value = row_lengths(g.value);
  out.score = row_lengths(g.score);
  out.recurrent = row_lengths(g.recurrent);
  return out;
}

FlowLine summarize(const std::vector<Flow>& flows) {
  FlowLine out;
  size_t S = flows[0].full.size(), T = flows[0].steps.size();
  double count = static_cast<double>(flows.size());
  auto median_of = [&](auto&& number) {
    std::vector<double> all;
    for (const Flow& f : flows) all.push_back(std::log10(number(f)));
    return median(all);
  };
  for (size_t j = 0; j < S; ++j) {
    std::vector<double> logs;
    for (const Flow& f : flows) logs.push_back(std::log10(f.full[j] / f.full[S - 1]));
    out.median.push_back(median(logs));
    out.low.push_back(*std::min_element(logs.begin(), logs.end()));
    out.high.push_back(*std::max_element(logs.begin(), logs.end()));
    if (flows[0].value.empty()) continue;
    double value = 0, score = 0, recurrent = 0;
    for (const Flow& f : flows) {
      double sum = f.value[j] + f.score[j] + f.recurrent[j];
      value += f.value[j] / sum;
      score += f.score[j] / sum;
      recurrent += f.recurrent[j] / sum;
    }
    out.value.push_back(value / count);
    out.score.push_back(score / count);
    out.recurrent.push_back(recurrent / count);
  }
  for (size_t t = 0; t < T; ++t) {
    out.map.emplace_back();
    for (size_t j = 0; j < S; ++j)
      out.map.back().push_back(median_of([&](const Flow& f) { return f.steps[t][j]; }));
  }
  return out;
}

// ---- networks ----

const std::vector<std::string>& flow_inits() {
  static const std::vector<std::string> names = {"lecun", "glorot", "orthogonal", "pytorch"};
  return names;
}

void start_anew(nn::Seq2Seq& network, const std::string& init, Rng& rng) {
  if (std::find(flow_inits().begin(), flow_inits().end(), init) == flow_inits().end())
    fail("lens", "unknown start \"" + init + "\": one of lecun, glorot, orthogonal, pytorch");
  if (init == "pytorch") return;
  int gates = static_cast<int>(network.config.rnn.cell.gates());
  for (const auto& entry : nn::visited(network)) {
    const std::string& name = entry.name;
    std::string last = name.substr(name.rfind('.') + 1);
    if (entry.layer == "Embedding" || last.starts_with("weight_ln")) continue;
    Parameter& p = *entry.parameter;
    int blocks = last.starts_with("weight_ih") || last.starts_with("weight_hh") ? gates : 1;
    if (last.starts_with("bias")) {
      nn::init::zeros_(p);
      // The second of an LSTM's gates; it has two biases, of which one is enough.
      if (network.config.rnn.cell.kind == nn::CellKind::lstm && last.starts_with("bias_ih"))
        p.update([&](const Tensor& b) {
          for (int64_t k = b.numel() / 4; k < b.numel() / 2; ++k) b.set(k, 1);
        });
    } else if (p.shape().dims() == 1) {  // a score vector is a matrix of one row
      double n = static_cast<double>(p.shape().numel()), a = std::sqrt(6 / (n + 1));
      if (init == "lecun")
        nn::init::normal_(p, 0, 1 / std::sqrt(n), rng);
      else
        nn::init::uniform_(p, -a, a, rng);
    } else if (init == "lecun") {
      nn::init::kaiming_normal_(p, rng);
    } else if (init == "orthogonal" && last.starts_with("weight_hh")) {
      nn::init::orthogonal_blocks(p, gates, rng);
    } else {
      nn::init::xavier_uniform_(p, rng, {.blocks = blocks});
    }
  }
}

nn::Seq2SeqConfig flow_config(const std::string& cell, bool bidirectional) {
  nn::Seq2SeqConfig config;
  config.source_vocabulary = config.target_vocabulary = 24;
  config.embedding_dim = config.hidden_size = 16;
  config.rnn.cell = nn::cell_type(cell);
  config.rnn.bidirectional = bidirectional;
  return config;
}

std::string flow_setup(const nn::Seq2SeqConfig& c, const FlowAsked& asked) {
  std::string start = asked.init == "lecun"    ? "weights from N(0, 1/fan_in), biases 0"
                      : asked.init == "glorot" ? "weights from Glorot's uniform distribution, biases 0"
                      : asked.init == "orthogonal"
                          ? "recurrent weights orthonormal, the others Glorot's, biases 0"
                          : "weights and biases from U(-1/sqrt(H), 1/sqrt(H)), PyTorch's default";
  if (c.rnn.cell.kind == nn::CellKind::lstm && asked.init != "pytorch") start += " (forget gate 1)";
  return fmt::format(
      "{} pairs of fresh networks: {} units, embeddings of {} from N(0, 1), {}; the decoder starts from tanh(W "
      "h + b) "
      "of the encoder's last state and says {} random words, whose losses are added; with: {} attention; "
      "without: "
      "that last state instead of a context",
      asked.seeds, c.hidden_size, c.embedding_dim, start, asked.steps,
      c.attention == "bahdanau" ? "additive" : c.attention);
}

FlowResult flow_fresh(const nn::Seq2SeqConfig& config, int64_t length, const FlowAsked& asked) {
  FlowResult out = empty_result(config, "fresh", length);
  std::vector<Flow> with, without;
  for (int seed = 1; seed <= asked.seeds; ++seed) {
    Rng rng(static_cast<uint64_t>(seed));
    auto made = [&](const std::string& attention, uint64_t stream) {
      Rng own = rng.split(stream);
      nn::Seq2SeqConfig c = config;
      c.attention = attention;
      c.rnn.dropout = c.rnn.recurrent_dropout = 0;
      nn::Seq2Seq network(c, own);
      start_anew(network, asked.init, own);
      nn::to(network, DType::f64);
      return network;
    };
    nn::Seq2Seq attentive = made(config.attention, 1), plain = made("none", 2);
    Rng draw = rng.split(3);
    std::vector<int32_t> source = words(length, config.source_vocabulary, draw);
    std::vector<int32_t> target = words(asked.steps, config.target_vocabulary, draw);
    target.back() = nn::kEos;
    size_t checked = words_to_check(asked, seed, length);
    with.push_back(measure(attentive, FlowMode::with, source, target, checked, out.checks));
    without.push_back(measure(plain, FlowMode::without, source, target, checked, out.checks));
  }
  out.with = summarize(with);
  out.without = summarize(without);
  return out;
}

FlowResult flow_trained(const nn::Seq2Seq& network, const nn::Seq2Seq* without, int64_t length,
                        const FlowAsked& asked) {
  FlowResult out = empty_result(network.config, "trained", length);
  std::vector<Flow> with, other;
  for (int seed = 1; seed <= asked.seeds; ++seed) {
    Rng draw(static_cast<uint64_t>(seed));
    std::vector<int32_t> source = words(length - 1, network.config.source_vocabulary, draw);
    std::vector<int32_t> target = words(asked.steps, network.config.target_vocabulary, draw);
    source.push_back(nn::kEos);
    target.back() = nn::kEos;
    size_t checked = words_to_check(asked, seed, length);
    with.push_back(measure(network, FlowMode::with, source, target, checked, out.checks));
    other.push_back(without ? measure(*without, FlowMode::without, source, target, checked, out.checks)
                            : measure(network, FlowMode::cut, source, target, checked, out.checks));
  }
  out.with = summarize(with);
  out.without = summarize(other);
  return out;
}

FlowResult flow_sentence(const nn::Seq2Seq& network, const nn::Seq2Seq* without,
                         const std::vector<int32_t>& source, const std::vector<int32_t>& target) {
  FlowResult out = empty_result(network.config, "trained", static_cast<int64_t>(source.size()));
  out.with = summarize({measure(network, FlowMode::with, source, target, source.size(), out.checks)});
  out.without =
      summarize({without ? measure(*without, FlowMode::without, source, target, source.size(), out.checks)
                         : measure(network, FlowMode::cut, source, target, source.size(), out.checks)});
  return out;
}

}  // namespace lens
