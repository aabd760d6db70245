// What `lens flow` computes: gradients at the source words, of networks fresh or trained, and their lengths.

#include "flow.h"

#include <fmt/core.h>

#include <algorithm>

#include <gradus/nn/init.h>
#include <gradus/numeric.h>
#include <gradus/ops.h>

#include <common/spread.h>

#include "commands.h"
#include "flow_check.h"
#include "norms.h"
#include "sentence/dissection.h"
#include "sentence/sentence.h"

namespace lens {
namespace {

using namespace gradus;

constexpr size_t kCheckedWords = 8;  // of a setting that is not checked in full

Tensor empty_rows(const Reading& r) {
  return Tensor::zeros({r.annotations.size(0), r.annotations.size(2)}, DType::f64);
}

FlowGradients with_attention(const nn::Seq2Seq& network, const std::vector<int32_t>& source,
                             const std::vector<int32_t>& target) {
  Dissection d(network, source, {target.begin(), target.end() - 1});
  Reading r;
  std::vector<Step> steps;
  d.run(r, steps);
  BackwardOptions options{.keep = arrivals(r), .retain_graph = true};
  for (const Step& s : steps)
    options.keep.insert(options.keep.end(), {s.value_annotations, s.score_annotations});
  double loss = 0;
  for (const Step& s : steps) loss += s.loss.item();
  require_same_loss(loss, d.network_loss(), more_than_softmax(network));
  FlowGradients out{{}, empty_rows(r), empty_rows(r), empty_rows(r), {}};
  for (const Step& step : steps) {
    Gradients grads = backward(step.loss, options);
    out.losses.push_back(step.loss.item());
    out.steps.push_back(empty_rows(r));
    add_gradients(out.steps.back(), grads, r.forward, r.backward);
    for (const Step& s : steps) {
      add_gradient(out.value, grads, s.value_annotations);
      add_gradient(out.score, grads, s.score_annotations);
    }
    add_gradients(out.recurrent, grads, r.forward_link, r.backward_link);
    add_start_gradients(out.recurrent, grads, r);
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
      Var h = j == r.forward_end ? r.forward[j] : stop_gradient(r.forward[j]);
      if (!r.backward.empty()) h = concat({h, j == 0 ? r.backward[j] : stop_gradient(r.backward[j])}, -1);
      annotations.push_back(h);
    }
    // In a residual encoder an annotation is its state and something from below, which has no part in this.
    Var states = stack(annotations, 0);
    r.encoded.annotations = states + stop_gradient(r.annotations - states);
  }
  int64_t T = static_cast<int64_t>(target.size());
  Var readout = network.decoder->teacher_forced(batch_of(source, target).target_in, r.encoded).readout;
  Var logits = network.output(reshape(readout, {T, readout.size(-1)}));
  FlowGradients out;
  for (int64_t t = 0; t < T; ++t) {
    Tensor word = Tensor::from_ids({1}, {target[static_cast<size_t>(t)]});
    Var loss = cross_entropy(slice(logits, 0, t, t + 1), word).loss;
    out.losses.push_back(loss.item());
    out.steps.push_back(empty_rows(r));
    Gradients grads = backward(loss, {.keep = arrivals(r), .retain_graph = true});
    add_gradients(out.steps.back(), grads, r.forward, r.backward);
  }
  return out;
}

// A network with attention, and one without; nullptr: the same with its short cut cut.
void measure(Measured& measured, const nn::Seq2Seq& attentive, const nn::Seq2Seq* plain,
             const std::vector<int32_t>& source, const std::vector<int32_t>& target, size_t checked) {
  auto add = [&](std::vector<Flow>& to, const nn::Seq2Seq& network, FlowMode mode) {
    FlowGradients g = flow_gradients(network, mode, source, target);
    if (checked > 0)
      measured.checks.add(check_flow(network, mode, source, target, g, spread(source.size(), checked)));
    to.push_back(measured.lengths(g));
  };
  add(measured.with, attentive, FlowMode::with);
  plain ? add(measured.without, *plain, FlowMode::without) : add(measured.without, attentive, FlowMode::cut);
}

FlowResult result_of(const Measured& measured, const nn::Seq2SeqConfig& config, const char* weights,
                     int64_t length) {
  return measured.result({.weights = weights,
                          .cell = nn::cell_name(config.rnn.cell),
                          .bidirectional = config.bidirectional(),
                          .length = length});
}

// Words of a vocabulary, none of its special ones.
std::vector<int32_t> random_words(int64_t count, int64_t vocabulary, Rng& rng) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<int32_t>(nn::kEos + 1 + rng.below(vocabulary - nn::kEos - 1)));
  return out;
}

}  // namespace

std::vector<int32_t> with_end(std::vector<int32_t> words) {
  words.push_back(nn::kEos);
  return words;
}

std::vector<int32_t> random_sentence(int64_t length, int64_t vocabulary, Rng& rng) {
  return with_end(random_words(length - 1, vocabulary, rng));
}

size_t words_to_check(const FlowAsked& asked, int seed, size_t length) {
  return asked.thorough ? length : seed == 1 ? kCheckedWords : 0;
}

std::vector<size_t> spread(size_t count, size_t most) {
  std::vector<size_t> out;
  size_t n = std::min(count, most);
  for (size_t i = 0; i < n; ++i) out.push_back(n == 1 ? 0 : i * (count - 1) / (n - 1));
  return out;
}

FlowGradients flow_gradients(const nn::Seq2Seq& network, FlowMode mode, const std::vector<int32_t>& source,
                             const std::vector<int32_t>& target) {
  return mode == FlowMode::with ? with_attention(network, source, target)
                                : without_attention(network, mode, source, target);
}

Tensor FlowGradients::whole() const { return sum_of(steps); }

FlowGradients by_words(const FlowGradients& pieces, const std::vector<int32_t>& source_word_of,
                       const std::vector<int32_t>& target_word_of) {
  FlowGradients out;
  for (size_t t = 0; t < pieces.steps.size(); ++t) {
    Tensor rows = rows_of_words(pieces.steps[t], source_word_of);
    if (t > 0 && target_word_of[t] == target_word_of[t - 1]) {
      add_to(out.steps.back(), rows);
      out.losses.back() += pieces.losses[t];
    } else {
      out.steps.push_back(rows);
      out.losses.push_back(pieces.losses[t]);
    }
  }
  for (Tensor FlowGradients::*way : {&FlowGradients::value, &FlowGradients::score, &FlowGradients::recurrent})
    if ((pieces.*way).defined()) out.*way = rows_of_words(pieces.*way, source_word_of);
  return out;
}

Flow lengths_of(const FlowGradients& g) {
  Flow out{row_norms(g.whole()), {}, {}, {}, {}};
  for (const Tensor& step : g.steps) out.steps.push_back(row_norms(step));
  if (!g.value.defined()) return out;
  out.value = row_norms(g.value);
  out.score = row_norms(g.score);
  if (g.recurrent.defined()) out.recurrent = row_norms(g.recurrent);
  return out;
}

FlowLine summarize(const std::vector<Flow>& flows) {
  FlowLine out;
  size_t S = flows[0].full.size(), T = flows[0].steps.size();
  double count = static_cast<double>(flows.size());
  auto logs_of = [&](auto&& number) {
    std::vector<double> logs;
    for (const Flow& f : flows) logs.push_back(std::log10(number(f)));
    return logs;
  };
  for (size_t j = 0; j < S; ++j) {
    std::vector<double> logs = logs_of([&](const Flow& f) { return f.full[j] / f.full[S - 1]; });
    out.median.push_back(translator::median(logs));
    out.low.push_back(*std::min_element(logs.begin(), logs.end()));
    out.high.push_back(*std::max_element(logs.begin(), logs.end()));
    if (flows[0].value.empty()) continue;
    double value = 0, score = 0, recurrent = 0;
    for (const Flow& f : flows) {
      const double other = f.recurrent.empty() ? 0 : f.recurrent[j], sum = f.value[j] + f.score[j] + other;
      value += f.value[j] / sum;
      score += f.score[j] / sum;
      recurrent += other / sum;
    }
    out.value.push_back(value / count);
    out.score.push_back(score / count);
    if (!flows[0].recurrent.empty()) out.recurrent.push_back(recurrent / count);
  }
  for (size_t t = 0; t < T; ++t) {
    out.map.emplace_back();
    for (size_t j = 0; j < S; ++j)
      out.map.back().push_back(translator::median(logs_of([&](const Flow& f) { return f.steps[t][j]; })));
  }
  return out;
}

Flow Measured::lengths(const FlowGradients& g) const {
  return lengths_of(by_word ? by_words(g, by_word->source.word_of, by_word->target.word_of) : g);
}

FlowResult Measured::result(FlowResult about) const {
  about.with = summarize(with);
  about.without = summarize(without);
  about.checks = checks;
  if (!by_word) return about;
  about.length = static_cast<int64_t>(by_word->source.words.size());
  about.source = by_word->source.words;
  about.target = by_word->target.words;
  return about;
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
    if (name.ends_with("embedding.weight") || last.starts_with("weight_ln")) continue;
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
      nn::init::orthogonal_(p, rng, {.blocks = gates});
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
      "{} pair{} of fresh networks: {} units, embeddings of {} from N(0, 1), {}; the decoder starts from "
      "tanh(W h + b) of the encoder's last state and says {} random words, whose losses are added; with: {} "
      "attention; without: that last state instead of a context",
      asked.seeds, asked.seeds == 1 ? "" : "s", c.hidden_size, c.embedding_dim, start, asked.steps,
      c.attention == "bahdanau" ? "additive" : c.attention);
}

FlowResult flow_fresh(const nn::Seq2SeqConfig& config, int64_t length, const FlowAsked& asked) {
  Measured measured;
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
    const std::vector<int32_t> source = random_words(length, config.source_vocabulary, draw),
                               target = random_sentence(asked.steps, config.target_vocabulary, draw);
    measure(measured, attentive, &plain, source, target, words_to_check(asked, seed, source.size()));
  }
  return result_of(measured, config, "fresh", length);
}

FlowResult flow_trained(const nn::Seq2Seq& network, const nn::Seq2Seq* without, int64_t length,
                        const FlowAsked& asked) {
  Measured measured;
  for (int seed = 1; seed <= asked.seeds; ++seed) {
    Rng draw(static_cast<uint64_t>(seed));
    const std::vector<int32_t> source = random_sentence(length, network.config.source_vocabulary, draw),
                               target = random_sentence(asked.steps, network.config.target_vocabulary, draw);
    measure(measured, network, without, source, target, words_to_check(asked, seed, source.size()));
  }
  return result_of(measured, network.config, "trained", length);
}

FlowResult flow_sentence(const Subject& subject, const nn::Seq2Seq* without) {
  Measured measured{&subject};
  measure(measured, subject.network(), without, subject.source_ids, with_end(subject.target_ids),
          subject.source_ids.size());
  return result_of(measured, subject.network().config, "trained", 0);
}

}  // namespace lens
