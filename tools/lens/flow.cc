#include "flow.h"

#include <algorithm>
#include <cmath>

#include <gradus/ops.h>

#include "differences.h"
#include "dissection.h"
#include "sentence.h"

namespace lens {
namespace {

using namespace gradus;

// Norms over both directions' states at each word.
class Norms {
 public:
  Norms(const Gradients& grads, size_t words) : grads_(grads), squares_(words) {}
  void add(const Var& x, size_t j) {
    if (!x.defined() || !grads_.contains(x)) return;
    for (double v : grads_[x].to_vector()) squares_[j] += v * v;
  }
  std::vector<double> take() const {
    std::vector<double> out;
    for (double x : squares_) out.push_back(std::sqrt(x));
    return out;
  }

 private:
  const Gradients& grads_;
  std::vector<double> squares_;
};

std::vector<Var> states_of(const Reading& r) {
  std::vector<Var> out = r.forward;
  out.insert(out.end(), r.backward.begin(), r.backward.end());
  return out;
}

std::vector<double> full_norms(const Reading& r, const Gradients& grads) {
  Norms norms(grads, r.forward.size());
  for (size_t j = 0; j < r.forward.size(); ++j) {
    norms.add(r.forward[j], j);
    if (!r.backward.empty()) norms.add(r.backward[j], j);
  }
  return norms.take();
}

// The loss of a target through the library's own decoder.
Var decoder_loss(const nn::Seq2Seq& network, const nn::Encoded& encoded, const std::vector<int32_t>& target) {
  int64_t T = static_cast<int64_t>(target.size());
  std::vector<int32_t> in = target;
  in.insert(in.begin(), nn::kBos);
  in.pop_back();
  nn::DecoderOutputs out = (*network.decoder)(Tensor::from_ids({T, 1}, in), encoded);
  Var logits = network.output(reshape(out.readout, {T, out.readout.size(-1)}));
  return cross_entropy(logits, Tensor::from_ids({T}, target), {.reduction = Reduction::sum}).loss;
}

std::vector<double> rows_of(const Tensor& x) {
  std::vector<double> out;
  int64_t n = x.size(-1);
  for (int64_t r = 0; r < x.numel() / n; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < n; ++c) sum += x.at(r * n + c) * x.at(r * n + c);
    out.push_back(std::sqrt(sum));
  }
  return out;
}

double loss_at(const nn::Seq2Seq& network, const std::vector<int32_t>& source,
               const std::vector<int32_t>& target, int64_t word, const Tensor& shift) {
  NoGrad guard;
  return decoder_loss(network, read_source(network.encoder, source, word, shift).encoded, target).item();
}

// A network's gradient at the first and the last word, along itself, against differences of the loss: the slope there is
// its length.
double check(const nn::Seq2Seq& network, const std::vector<int32_t>& source,
             const std::vector<int32_t>& target) {
  Reading r = read_source(network.encoder, source);
  Var loss = decoder_loss(network, r.encoded, target);
  Gradients grads = backward(loss, {.keep = states_of(r)});
  double worst = 0;
  for (size_t j : {size_t{0}, source.size() - 1}) {
    std::vector<double> g = grads[r.forward[j]].to_vector();
    if (!r.backward.empty())
      for (double x : grads[r.backward[j]].to_vector()) g.push_back(x);
    double length = 0;
    for (double x : g) length += x * x;
    length = std::sqrt(length);
    if (length == 0) continue;
    for (double& x : g) x /= length;
    auto loss_moved = [&](double by) {
      std::vector<double> v = g;
      for (double& x : v) x *= by;
      Tensor shift = Tensor::from({static_cast<int64_t>(v.size())}, v, DType::f64);
      return loss_at(network, source, target, static_cast<int64_t>(j), shift);
    };
    double slope = difference(pointwise(loss_moved), 1e-2).value;
    worst = std::max(worst, relative_error(length, slope, std::max(1e-5 * loss.item(), 1e-9)));
  }
  return worst;
}

std::vector<int32_t> words(int64_t count, int64_t vocabulary, Rng& rng) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<int32_t>(nn::kEos + 1 + rng.below(vocabulary - nn::kEos - 1)));
  return out;
}

nn::Seq2Seq fresh(const FlowSetting& s, const char* attention, int64_t width, Rng rng) {
  nn::Seq2SeqConfig config;
  config.source_vocabulary = config.target_vocabulary = 24;
  config.embedding_dim = config.hidden_size = width;
  config.cell = s.cell;
  config.bidirectional = s.bidirectional;
  config.attention = attention;
  nn::Seq2Seq network(config, rng);
  nn::to(network, DType::f64);
  return network;
}

}  // namespace

Flow flow_with(const nn::Seq2Seq& network, const std::vector<int32_t>& source,
               const std::vector<int32_t>& target) {
  std::vector<int32_t> words(target.begin(), target.end() - 1);
  Dissection d(network, source, words);
  Reading r;
  std::vector<Step> steps;
  d.run(r, steps);
  Var loss;
  BackwardOptions options{.keep = states_of(r)};
  for (const Step& s : steps) {
    loss = loss.defined() ? loss + s.loss : s.loss;
    options.keep.insert(options.keep.end(), {s.value_annotations, s.score_annotations});
  }
  for (auto* links : {&r.forward_link, &r.backward_link})
    options.keep.insert(options.keep.end(), links->begin(), links->end());
  Gradients grads = backward(loss, options);
  Flow out{full_norms(r, grads), {}, {}, {}};
  Tensor value = Tensor::zeros(r.annotations.shape(), DType::f64), score = value.clone();
  for (const Step& s : steps)
    for (auto [sum, x] : {std::pair(&value, &s.value_annotations), std::pair(&score, &s.score_annotations)})
      if (grads.contains(*x)) {
        Tensor g = grads[*x];
        for (int64_t i = 0; i < sum->numel(); ++i) sum->f64()[i] += g.f64()[i];
      }
  out.value = rows_of(value);
  out.score = rows_of(score);
  Norms links(grads, r.forward.size());
  for (size_t j = 0; j < r.forward.size(); ++j) {
    links.add(r.forward_link[j], j);
    if (!r.backward.empty()) links.add(r.backward_link[j], j);
  }
  out.recurrent = links.take();
  return out;
}

Flow flow_without(const nn::Seq2Seq& network, const std::vector<int32_t>& source,
                  const std::vector<int32_t>& target) {
  Reading r = read_source(network.encoder, source);
  return {
      full_norms(r, backward(decoder_loss(network, r.encoded, target), {.keep = states_of(r)})), {}, {}, {}};
}

Flow flow_cut(const nn::Seq2Seq& network, const std::vector<int32_t>& source,
              const std::vector<int32_t>& target) {
  Reading r = read_source(network.encoder, source);
  size_t S = source.size();
  std::vector<Var> annotations;
  for (size_t j = 0; j < S; ++j) {
    Var f = j + 1 == S ? r.forward[j] : stop_gradient(r.forward[j]);
    if (r.backward.empty()) annotations.push_back(f);
    else annotations.push_back(concat({f, j == 0 ? r.backward[j] : stop_gradient(r.backward[j])}, -1));
  }
  r.encoded.annotations = stack(annotations, 0);
  return {
      full_norms(r, backward(decoder_loss(network, r.encoded, target), {.keep = states_of(r)})), {}, {}, {}};
}

FlowLine summarize(const std::vector<Flow>& flows) {
  FlowLine out;
  size_t S = flows[0].full.size(), n = flows.size();
  for (size_t j = 0; j < S; ++j) {
    std::vector<double> logs;
    for (const Flow& f : flows) logs.push_back(std::log10(f.full[j] / f.full[S - 1]));
    std::sort(logs.begin(), logs.end());
    out.median.push_back(n % 2 ? logs[n / 2] : (logs[n / 2 - 1] + logs[n / 2]) / 2);
    out.low.push_back(logs.front());
    out.high.push_back(logs.back());
    if (flows[0].value.empty()) continue;
    double value = 0, score = 0, recurrent = 0;
    for (const Flow& f : flows) {
      double sum = f.value[j] + f.score[j] + f.recurrent[j];
      value += f.value[j] / sum;
      score += f.score[j] / sum;
      recurrent += f.recurrent[j] / sum;
    }
    double count = static_cast<double>(n);
    out.value.push_back(value / count);
    out.score.push_back(score / count);
    out.recurrent.push_back(recurrent / count);
  }
  return out;
}

FlowResult flow_untrained(const FlowSetting& setting, int seeds, int64_t width, int64_t steps) {
  FlowResult out{setting, {}, {}};
  std::vector<Flow> with, without;
  for (int seed = 1; seed <= seeds; ++seed) {
    Rng rng(static_cast<uint64_t>(seed));
    nn::Seq2Seq attentive = fresh(setting, "bahdanau", width, rng.split(1));
    nn::Seq2Seq plain = fresh(setting, "none", width, rng.split(2));
    Rng draw = rng.split(3);
    std::vector<int32_t> source = words(setting.length, 24, draw), target = words(steps, 24, draw);
    target.back() = nn::kEos;
    with.push_back(flow_with(attentive, source, target));
    without.push_back(flow_without(plain, source, target));
    if (seed > 1) continue;
    out.worst_error = std::max(check(attentive, source, target), check(plain, source, target));
  }
  out.with = summarize(with);
  out.without = summarize(without);
  return out;
}

FlowResult flow_trained(const nn::Seq2Seq& network, const nn::Seq2Seq* without, int64_t length, int seeds,
                        int64_t steps) {
  FlowResult out{{network.config.cell, network.config.bidirectional, length}, {}, {}};
  std::vector<Flow> with, other;
  for (int seed = 1; seed <= seeds; ++seed) {
    Rng draw(static_cast<uint64_t>(seed));
    std::vector<int32_t> source = words(length - 1, network.config.source_vocabulary, draw);
    std::vector<int32_t> target = words(steps, network.config.target_vocabulary, draw);
    source.push_back(nn::kEos);
    target.back() = nn::kEos;
    with.push_back(flow_with(network, source, target));
    other.push_back(without ? flow_without(*without, source, target) : flow_cut(network, source, target));
    if (seed == 1) out.worst_error = check(network, source, target);
  }
  out.with = summarize(with);
  out.without = summarize(other);
  return out;
}

}  // namespace lens
