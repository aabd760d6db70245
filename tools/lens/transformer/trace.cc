#include "trace.h"

#include <algorithm>
#include <cmath>

#include <gradus/numeric.h>
#include <gradus/ops.h>

#include "norms.h"
#include "sentence/sentence.h"

namespace lens::transformer {
namespace {

using namespace gradus;

Tensor arrived(const gradus::Gradients& grads, const Var& x) {
  if (!x.defined()) return {};
  return grads.contains(x) ? grads[x] : Tensor::zeros(x.shape(), DType::f64);
}

void note(double& worst, double off) { worst = worse(worst, std::abs(off)); }

double largest_difference(const Tensor& a, const Tensor& b) {
  double off = 0;
  for (int64_t i = 0; i < a.numel(); ++i) note(off, a.f64()[i] - b.f64()[i]);
  return off;
}

// Gains, mixtures, and that the scores' gradient is what the formula says.
void open_heads(const Sublayer& s, PartGradients& g, Trace& trace) {
  Tensor alpha = s[kWeights].value(), v = s[kV].value(), o = s[kMixed].value();
  const int64_t H = alpha.size(1), R = alpha.size(2), C = alpha.size(3), E = v.size(2), n = E / H;
  g.gain = Tensor::zeros({H, R, C}, DType::f64);
  g.mix = Tensor::zeros({H, R}, DType::f64);
  for (int64_t h = 0; h < H; ++h)
    for (int64_t i = 0; i < R; ++i) {
      const double* at = g[kMixed].f64() + i * E + h * n;
      auto along = [&](const double* x) {
        double sum = 0;
        for (int64_t k = 0; k < n; ++k) sum += at[k] * x[k];
        return sum;
      };
      const double mix = g.mix.f64()[h * R + i] = along(o.f64() + i * E + h * n);
      double total = 0;
      for (int64_t j = 0; j < C; ++j) {
        const int64_t k = (h * R + i) * C + j;
        const double gain = g.gain.f64()[k] = along(v.f64() + j * E + h * n);
        const double e = g[kScores].f64()[k];
        total += e;
        note(trace.identity_residual, e - alpha.f64()[k] * (gain - mix));
      }
      note(trace.score_sum, total);
    }
}

// The three terms of a norm's gradient; they must add up to what arrived at its input.
Tensor open_norm(const nn::LayerNorm& norm, const Tensor& x, const Tensor& dy, const Tensor& dx,
                 double& residual) {
  const int64_t E = x.size(-1), R = x.numel() / E;
  Tensor out = Tensor::zeros({R, 4}, DType::f64);
  const double *gamma = norm.weight.value().f64(), scale = 1 / static_cast<double>(E);
  for (int64_t r = 0; r < R; ++r) {
    const double *in = x.f64() + r * E, *from = dy.f64() + r * E;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < E; ++i) mean += in[i] * scale;
    for (int64_t i = 0; i < E; ++i) variance += (in[i] - mean) * (in[i] - mean) * scale;
    const double one_over = 1 / std::sqrt(variance + norm.eps);
    double plain = 0, along = 0;
    for (int64_t i = 0; i < E; ++i) {
      plain += from[i] * gamma[i] * scale;
      along += from[i] * gamma[i] * (in[i] - mean) * one_over * scale;
    }
    for (int64_t i = 0; i < E; ++i)
      note(residual,
           one_over * (from[i] * gamma[i] - plain - (in[i] - mean) * one_over * along) - dx.f64()[r * E + i]);
    double* row = out.f64() + 4 * r;
    row[0] = mean;
    row[1] = one_over;
    row[2] = plain;
    row[3] = along;
  }
  return out;
}

Gradients differentiate_step(const Dissection& d, Trace& trace, size_t t) {
  const Run& r = trace.run;
  BackwardOptions options{.keep = {r.memory, r.logits, r.source, r.target}, .retain_graph = true};
  for (const Sublayer& s : r.parts)
    for (const Var& x : s.at)
      if (x.defined()) options.keep.push_back(x);
  gradus::Gradients grads = backward(r.losses[t], options);

  Gradients out;
  out.source = arrived(grads, r.source);
  out.target = arrived(grads, r.target);
  out.memory = arrived(grads, r.memory);
  out.logits = arrived(grads, r.logits);
  std::vector<Tensor> read;  // of the encoder's output, by all layers
  for (const Sublayer& s : r.parts) {
    PartGradients& g = out.parts.emplace_back();
    for (size_t f = 0; f < kFields; ++f) g.at[f] = arrived(grads, s.at[f]);
    const bool crossing = s.part == Part::cross;
    Tensor ways = crossing ? sum_of({g[kResidual], g[kToQuery]})
                           : sum_of({g[kResidual], g[kToQuery], g[kToKey], g[kToValue]});
    note(trace.way_residual, largest_difference(ways, g[kX]));
    if (crossing) read.insert(read.end(), {g[kToKey], g[kToValue]});
    if (attends(s.part)) open_heads(s, g, trace);
    if (const nn::LayerNorm* norm = d.norm(s)) {
      const bool before = s[kNormQuery].defined();
      Tensor through = crossing ? g[kToQuery] : sum_of({g[kToQuery], g[kToKey], g[kToValue]});
      g.norm = before ? open_norm(*norm, s[kX].value(), sum_of({g[kNormQuery], g[kNormKey], g[kNormValue]}),
                                  through, trace.norm_residual)
                      : open_norm(*norm, s[kSum].value(), g[kNormed], g[kSum], trace.norm_residual);
    }
  }
  note(trace.way_residual, largest_difference(sum_of(read), out.memory));
  return out;
}

// [R, C] the mean over heads.
Tensor mean_of_heads(const Sublayer& s) {
  NoGrad guard;
  Tensor all = s[kWeights].value();
  return mean(all.reshape(all.shape().without(0)), {.axes = {0}}).value();
}

// half of x, half of a x
Tensor half(const Tensor& a, const Tensor& of, const Tensor& x) {
  NoGrad guard;
  return (matmul(a, of) * 0.5 + Var(x) * 0.5).value();
}

std::vector<double> normalised(std::vector<double> x) {
  double sum = 0;
  for (double v : x) sum += v;
  for (double& v : x) v = sum > 0 ? v / sum : 0;
  return x;
}

}  // namespace

Tensor head_of(const Tensor& x, int64_t head) { return x.reshape(x.shape().without(0)).row(head); }

Tensor PartGradients::of(const Station& station) const {
  std::vector<Tensor> all;
  for (Field f : station.fields) all.push_back(at[f]);
  return sum_of(all);
}

double Trace::worst() const {
  double w = 0;
  for (const Compared& c : checks) w = worse(w, c.error);
  return w;
}

int64_t worst_step(const Run& run) {
  auto less = [](const Var& a, const Var& b) { return a.item() < b.item(); };
  return std::max_element(run.losses.begin(), run.losses.end(), less) - run.losses.begin();
}

double score_gradient(const Trace& trace, int64_t step, const Spot& spot) {
  const PartGradients& g = trace.steps[static_cast<size_t>(step)].parts[spot.part];
  return spot.head < 0 ? norm(g[kOut]) : norm(head_of(g[kScores], spot.head));
}

Spot strongest(const Trace& trace, int64_t step, const Wanted& wanted) {
  Spot best;
  double most = -1;
  auto consider = [&](const Spot& spot) {
    const double size = score_gradient(trace, step, spot);
    if (!(size > most)) return;
    most = size;
    best = spot;
  };
  for (size_t p = 0; p < trace.run.parts.size(); ++p) {
    const Sublayer& s = trace.run.parts[p];
    if (wanted.part ? s.part != *wanted.part : !attends(s.part)) continue;
    if (wanted.layer >= 0 && s.layer != wanted.layer) continue;
    if (!attends(s.part)) consider({p, -1});
    for (int64_t h = 0; attends(s.part) && h < s[kScores].size(1); ++h)
      if (wanted.head < 0 || h == wanted.head) consider({p, h});
  }
  return best;
}

double gradient_from_later(const Trace& trace, int64_t step) {
  const Tensor& g = trace.steps[static_cast<size_t>(step)].target;
  double squares = 0;
  for (int64_t t = step + 1; t < g.size(0); ++t) squares += std::pow(norm(g.row(t)), 2);
  return std::sqrt(squares);
}

int64_t row_of(const Trace& trace, int64_t step, const Spot& spot) {
  const Sublayer& s = trace.run.parts[spot.part];
  if (in_decoder(s.part)) return step;
  const PartGradients& g = trace.steps[static_cast<size_t>(step)].parts[spot.part];
  const Tensor& where = spot.head < 0 ? g[kOut] : g[kScores];
  const Tensor rows = spot.head < 0 ? where : head_of(where, spot.head);
  const std::vector<double> sizes = row_norms(rows.reshape({rows.size(0), rows.numel() / rows.size(0)}));
  return std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
}

Shares shares_of(const Trace& trace, int64_t step, const std::vector<int32_t>& word_of) {
  const int64_t S = trace.run.source.size(0), T = trace.run.target.size(0);
  Tensor read = Tensor::zeros({S, S}, DType::f64), said = Tensor::zeros({T, S}, DType::f64);
  for (int64_t j = 0; j < S; ++j) read.f64()[j * S + j] = 1;
  std::vector<double> weighted(static_cast<size_t>(S));
  const Gradients& g = trace.steps[static_cast<size_t>(step)];
  for (size_t p = 0; p < trace.run.parts.size(); ++p) {
    const Sublayer& s = trace.run.parts[p];
    if (!attends(s.part)) continue;
    const Tensor a = mean_of_heads(s);
    if (s.part == Part::encoder_self) read = half(a, read, read);
    if (s.part == Part::decoder_self) said = half(a, said, said);
    if (s.part != Part::cross) continue;
    said = half(a, read, said);
    const Tensor &w = s[kWeights].value(), &dw = g.parts[p][kWeights];
    for (int64_t i = 0; i < w.numel(); ++i)
      weighted[static_cast<size_t>(i % S)] += std::max(0.0, -w.f64()[i] * dw.f64()[i]);
  }
  const Tensor arrived = g.source.reshape({S, g.source.size(2)}), rollout = said.row(step);
  if (word_of.empty())
    return {normalised(rollout.to_vector()), normalised(weighted), normalised(row_norms(arrived))};
  auto added = [&](const double* x) {
    std::vector<double> sums(static_cast<size_t>(word_of.back()) + 1);
    for (size_t j = 0; j < word_of.size(); ++j) sums[static_cast<size_t>(word_of[j])] += x[j];
    return normalised(sums);
  };
  return {added(rollout.f64()), added(weighted.data()),
          normalised(row_norms(rows_of_words(arrived, word_of)))};
}

Trace differentiate(const Dissection& d) {
  Trace trace;
  trace.run = d.run();
  for (const Var& loss : trace.run.losses) trace.loss += loss.item();
  trace.network_loss = d.as_trained() ? d.network_loss() : std::nan("");
  if (d.as_trained()) require_same_loss(trace.loss, trace.network_loss, "a part of it is not taken apart");
  for (size_t t = 0; t < trace.run.losses.size(); ++t) trace.steps.push_back(differentiate_step(d, trace, t));
  trace.shown = worst_step(trace.run);
  trace.spot = strongest(trace, trace.shown);
  return trace;
}

}  // namespace lens::transformer
