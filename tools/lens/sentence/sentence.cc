#include "sentence.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gradus/ops.h>

#include "norms.h"

namespace lens {
namespace {

using namespace gradus;

// The first two come in, the others are computed.
const StationInfo kStations[] = {
    {"h", "annotations", {}, true, [](Step& s) -> Var& { return s.value_annotations; }},
    {"s_prev", "state before", {}, false, [](Step& s) -> Var& { return s.state_before; }},
    {"q", "query, projected", Stage::projected, false, [](Step& s) -> Var& { return s.attending.projected; }},
    {"k", "annotations, projected", Stage::keys, true, [](Step& s) -> Var& { return s.attending.keys; }},
    {"u", "hidden layer of the score", Stage::hidden, true,
     [](Step& s) -> Var& { return s.attending.hidden; }},
    {"e", "scores", Stage::scores, false, [](Step& s) -> Var& { return s.attending.scores; }},
    {"alpha", "weights", Stage::weights, false, [](Step& s) -> Var& { return s.attending.weights; }},
    {"c", "context", Stage::context, false, [](Step& s) -> Var& { return s.attending.context; }},
    {"s", "new state", Stage::state, false, [](Step& s) -> Var& { return s.state; }},
    {"a", "readout", Stage::readout, false, [](Step& s) -> Var& { return s.readout; }},
    {"z", "logits", Stage::logits, false, [](Step& s) -> Var& { return s.logits; }},
    {"p", "probabilities", Stage::probabilities, false, [](Step& s) -> Var& { return s.probabilities; }}};

const StationInfo& info_of(const std::string& name) {
  return *std::find_if(std::begin(kStations), std::end(kStations), [&](auto& i) { return i.name == name; });
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.numel(); ++i) sum += a.f64()[i] * b.f64()[i];
  return sum;
}

StepGradients differentiate_step(const Dissection& d, const SentenceTrace& trace, size_t t) {
  const Reading& r = trace.reading;
  const Step& step = trace.steps[t];
  BackwardOptions options{.keep = arrivals(r), .retain_graph = true};
  options.keep.push_back(r.words);
  auto but_h = std::span(kStations).subspan(1);
  for (const StationInfo& info : but_h)
    if (const Var& x = station(step, info.name); x.defined()) options.keep.push_back(x);
  for (size_t i = 0; i <= t; ++i)
    for (const Var& x : {trace.steps[i].value_annotations, trace.steps[i].score_annotations})
      options.keep.push_back(x);
  Gradients grads = backward(step.loss, options);

  StepGradients out;
  for (const StationInfo& info : but_h)
    if (const Var& x = station(step, info.name); x.defined() && grads.contains(x))
      out.stations.emplace_back(info.name, grads[x]);

  int64_t S = r.annotations.size(0), D = r.annotations.size(2);
  for (Tensor* part : {&out.value, &out.score, &out.earlier, &out.neighbours, &out.start, &out.full})
    *part = Tensor::zeros({S, D}, DType::f64);
  add_gradient(out.value, grads, step.value_annotations);
  add_gradient(out.score, grads, step.score_annotations);
  out.score_path = grads.contains(step.score_annotations);
  for (size_t i = 0; i < t; ++i) {
    add_gradient(out.earlier, grads, trace.steps[i].value_annotations);
    add_gradient(out.earlier, grads, trace.steps[i].score_annotations);
  }
  add_gradients(out.neighbours, grads, r.forward_link, r.backward_link);
  add_start_gradients(out.start, grads, r);
  add_gradients(out.full, grads, r.forward, r.backward);
  out.words = Tensor::zeros({S, r.words.size(2)}, DType::f64);
  add_gradient(out.words, grads, r.words);

  Anatomy::Contributions parts = d.anatomy().contributions(r.annotations.value());
  Tensor g = out.at("c");
  int64_t M = d.anatomy().heads;
  out.gain = Tensor::zeros({M, S}, DType::f64);
  out.mix = Tensor::zeros({M}, DType::f64);
  for (int64_t m = 0; g.defined() && m < M; ++m)
    for (int64_t j = 0; j < S; ++j) {
      double gain = dot(g, parts.each.row(m).row(j));
      out.gain.f64()[m * S + j] = gain;
      out.mix.f64()[m] += step.attending.weights.value().f64()[m * S + j] * gain;
    }
  return out;
}

// Identities that do not need differences.
void check_identities(const Dissection& d, SentenceTrace& trace, size_t t) {
  const StepGradients& g = trace.gradients[t];
  for (int64_t i = 0; i < g.full.numel(); ++i) {
    double sum =
        g.value.f64()[i] + g.score.f64()[i] + g.earlier.f64()[i] + g.neighbours.f64()[i] + g.start.f64()[i];
    trace.path_residual = gradus::worse(trace.path_residual, std::abs(sum - g.full.f64()[i]));
  }
  Tensor e = g.at("e"), alpha = trace.steps[t].attending.weights.value();
  if (!e.defined()) return;
  int64_t M = e.size(0), S = e.size(1);
  for (int64_t m = 0; m < M; ++m) {
    double sum = 0;
    for (int64_t j = 0; j < S; ++j) {
      int64_t i = m * S + j;
      sum += e.f64()[i];
      double formula = alpha.f64()[i] * (g.gain.f64()[i] - g.mix.f64()[m]) / d.anatomy().temperature();
      trace.identity_residual = gradus::worse(trace.identity_residual, std::abs(e.f64()[i] - formula));
    }
    trace.score_sum = gradus::worse(trace.score_sum, std::abs(sum));
  }
}

}  // namespace

Tensor StepGradients::at(const std::string& name) const {
  for (const auto& [key, g] : stations)
    if (key == name) return g;
  return {};
}

double SentenceTrace::worst() const {
  double w = 0;
  for (const Compared& c : checks) w = gradus::worse(w, c.error);
  return w;
}

std::vector<std::string> station_names(const Dissection& d) {
  std::vector<std::string> out = {"s_prev", "h"};
  for (Stage stage : d.stages())
    for (const StationInfo& info : stations_made())
      if (info.made == stage) out.push_back(info.name);
  return out;
}

std::span<const StationInfo> stations_made() { return std::span(kStations).subspan(2); }

const Var& station(const Step& step, const std::string& name) {
  return info_of(name).place(const_cast<Step&>(step));
}

std::string station_title(const std::string& name, bool luong_order) {
  return name == "a" && luong_order ? "attention vector" : info_of(name).title;
}

StationChecks checks_of(const SentenceTrace& trace, int64_t step, const std::string& station) {
  StationChecks out;
  for (const Compared& c : trace.checks) {
    if (c.step != step || !(c.station == station || (station == "h" && c.station.starts_with("h,")))) continue;
    ++out.count;
    // The first that is no number stays.
    if (!out.worst || (!std::isnan(out.worst->error) && !(c.error <= out.worst->error))) out.worst = &c;
  }
  return out;
}

int64_t worst_step(const std::vector<Step>& steps) {
  auto worse = [](const Step& a, const Step& b) { return a.loss.item() < b.loss.item(); };
  return std::max_element(steps.begin(), steps.end(), worse) - steps.begin();
}

std::vector<int32_t> likeliest(const Tensor& x, int32_t target) {
  std::vector<int32_t> ids(static_cast<size_t>(x.numel()));
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return x.f64()[a] > x.f64()[b]; });
  ids.resize(std::min<size_t>(ids.size(), 8));
  if (std::find(ids.begin(), ids.end(), target) == ids.end()) ids.back() = target;
  return ids;
}

StepGradients gradients_of_word(const SentenceTrace& trace, int32_t word,
                                const std::vector<int32_t>& target_word_of,
                                const std::vector<int32_t>& source_word_of) {
  StepGradients out;
  for (size_t t = 0; t < trace.gradients.size(); ++t) {
    if (target_word_of[t] != word) continue;
    const StepGradients& g = trace.gradients[t];
    out.score_path = out.score_path || g.score_path;
    for (Tensor StepGradients::*part :
         {&StepGradients::value, &StepGradients::score, &StepGradients::earlier, &StepGradients::neighbours,
          &StepGradients::start, &StepGradients::full, &StepGradients::words}) {
      add_to(out.*part, rows_of_words(g.*part, source_word_of));
    }
  }
  return out;
}

std::vector<float> mean_weights(const Step& step) {
  const Tensor& a = step.attending.weights.value();
  const int64_t M = a.size(0), S = a.size(1);
  std::vector<float> out;
  for (int64_t j = 0; j < S; ++j) {
    double sum = 0;
    for (int64_t m = 0; m < M; ++m) sum += a.f64()[m * S + j];
    out.push_back(static_cast<float>(sum / static_cast<double>(M)));
  }
  return out;
}

void require_same_loss(double apart, double whole, const std::string& otherwise) {
  if (!std::isfinite(apart) || !std::isfinite(whole))
    fail("lens", fmt::format("the loss is {}: a weight is no finite number, or the target's probability is 0 "
                             "in double precision; there is no gradient to look at",
                             std::isfinite(apart) ? whole : apart));
  if (!(std::abs(apart - whole) <= 1e-9 * std::max(1.0, std::abs(whole))))
    fail("lens", fmt::format("taken apart, the model's loss is {:.12g}, in one piece {:.12g}: {}", apart, whole,
                             otherwise));
}

std::string more_than_softmax(const nn::Seq2Seq& network) {
  const int64_t k = network.config.attention_options.top_k;
  return k > 0 ? fmt::format("its attention keeps only the {} largest weights (--top-k)", k)
               : "its attention is more than a softmax of scores and a mean";
}

SentenceTrace differentiate(const Dissection& d) {
  SentenceTrace trace;
  d.run(trace.reading, trace.steps);
  for (const Step& s : trace.steps) trace.loss += s.loss.item();
  trace.network_loss = d.network_loss();
  require_same_loss(trace.loss, trace.network_loss,
                    more_than_softmax(d.network()));
  trace.gradients.resize(trace.steps.size());
  for (size_t t = 0; t < trace.steps.size(); ++t) {
    trace.gradients[t] = differentiate_step(d, trace, t);
    check_identities(d, trace, t);
  }
  return trace;
}

SentenceTrace trace_sentence(const Dissection& d, int64_t shown, const std::string& bar_name) {
  SentenceTrace trace = differentiate(d);
  trace.shown = shown < 0 ? worst_step(trace.steps) : shown;
  trace.checks = check_trace(d, trace, bar_name);
  return trace;
}

}  // namespace lens
