#include "sentence.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <gradus/numeric.h>
#include <gradus/ops.h>

#include "checks.h"

namespace lens {
namespace {

using namespace gradus;

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.numel(); ++i) sum += a.f64()[i] * b.f64()[i];
  return sum;
}

// Rows of states side by side: forward_j and backward_j into [S, D]; undefined or missing ones are 0.
class Joined {
 public:
  Joined(const Gradients& grads, int64_t S, int64_t H, int64_t D)
      : grads_(grads), out_(Tensor::zeros({S, D}, DType::f64)), H_(H) {}
  void put(const Var& x, int64_t j, int direction) {
    if (!x.defined() || !grads_.contains(x)) return;
    Tensor g = grads_[x];
    for (int64_t i = 0; i < g.numel(); ++i) out_.f64()[j * out_.size(1) + direction * H_ + i] += g.f64()[i];
  }
  Tensor take() { return out_; }

 private:
  const Gradients& grads_;
  Tensor out_;
  int64_t H_;
};

void add_to(const Tensor& sum, const Gradients& grads, const Var& x) {
  if (!grads.contains(x)) return;
  Tensor g = grads[x];
  for (int64_t i = 0; i < sum.numel(); ++i) sum.f64()[i] += g.f64()[i];
}

StepGradients differentiate(const Dissection& d, const SentenceTrace& trace, size_t t) {
  const Reading& r = trace.reading;
  const Step& step = trace.steps[t];
  BackwardOptions options{.retain_graph = true};
  options.keep = {step.state_before};
  for (const StationInfo& info : stations_made())
    if (const Var& x = station(step, info.name); x.defined()) options.keep.push_back(x);
  for (size_t i = 0; i <= t; ++i)
    for (const Var& x : {trace.steps[i].value_annotations, trace.steps[i].score_annotations})
      options.keep.push_back(x);
  for (auto* states : {&r.forward, &r.backward, &r.forward_link, &r.backward_link})
    options.keep.insert(options.keep.end(), states->begin(), states->end());
  options.keep.push_back(r.forward_start);
  if (r.backward_start.defined()) options.keep.push_back(r.backward_start);
  Gradients grads = backward(step.loss, options);

  StepGradients out;
  auto note = [&](const std::string& name, const Var& x) {
    if (x.defined() && grads.contains(x)) out.stations.emplace_back(name, grads[x]);
  };
  note("s_prev", step.state_before);
  for (const StationInfo& info : stations_made()) note(info.name, station(step, info.name));

  int64_t S = r.annotations.size(0), D = r.annotations.size(2), H = r.forward[0].size(1);
  auto zeros = [&] { return Tensor::zeros({S, D}, DType::f64); };
  out.value = zeros();
  out.score = zeros();
  out.earlier = zeros();
  add_to(out.value, grads, step.value_annotations);
  add_to(out.score, grads, step.score_annotations);
  out.score_path = grads.contains(step.score_annotations);
  for (size_t i = 0; i < t; ++i) {
    add_to(out.earlier, grads, trace.steps[i].value_annotations);
    add_to(out.earlier, grads, trace.steps[i].score_annotations);
  }
  Joined neighbours(grads, S, H, D), start(grads, S, H, D), full(grads, S, H, D);
  for (int64_t j = 0; j < S; ++j) {
    size_t at = static_cast<size_t>(j);
    neighbours.put(r.forward_link[at], j, 0);
    full.put(r.forward[at], j, 0);
    if (r.backward.empty()) continue;
    neighbours.put(r.backward_link[at], j, 1);
    full.put(r.backward[at], j, 1);
  }
  start.put(r.forward_start, S - 1, 0);
  start.put(r.backward_start, 0, 1);
  out.neighbours = neighbours.take();
  out.start = start.take();
  out.full = full.take();

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

const std::vector<StationInfo>& stations_made() {
  static const std::vector<StationInfo> all = {
      {"q", Stage::projected, false},   {"k", Stage::keys, true},     {"u", Stage::hidden, true},
      {"e", Stage::scores, false},      {"alpha", Stage::weights, false}, {"c", Stage::context, false},
      {"s", Stage::state, false},       {"a", Stage::readout, false}, {"z", Stage::logits, false},
      {"p", Stage::probabilities, false}};
  return all;
}

const Var& station(const Step& s, const std::string& name) {
  static const Var none;
  const Attending& a = s.attending;
  if (name == "s_prev") return s.state_before;
  if (name == "h") return s.value_annotations;
  if (name == "q") return a.projected;
  if (name == "k") return a.keys;
  if (name == "u") return a.hidden;
  if (name == "e") return a.scores;
  if (name == "alpha") return a.weights;
  if (name == "c") return a.context;
  if (name == "s") return s.state;
  if (name == "a") return s.readout;
  if (name == "z") return s.logits;
  if (name == "p") return s.probabilities;
  return none;
}

int64_t worst_step(const std::vector<Step>& steps) {
  auto worse = [](const Step& a, const Step& b) { return a.loss.item() < b.loss.item(); };
  return std::max_element(steps.begin(), steps.end(), worse) - steps.begin();
}

SentenceTrace trace_sentence(const Dissection& d, int64_t shown) {
  SentenceTrace trace;
  d.run(trace.reading, trace.steps);
  for (const Step& s : trace.steps) trace.loss += s.loss.item();
  trace.network_loss = d.network_loss();
  if (!(std::abs(trace.loss - trace.network_loss) <= 1e-9 * std::max(1.0, std::abs(trace.network_loss))))
    fail("lens",
         fmt::format(
             "taken apart, the model's loss is {:.12g}, in one piece {:.12g}: its attention is more than a "
             "softmax of scores and a mean",
             trace.loss, trace.network_loss));
  trace.shown = shown < 0 ? worst_step(trace.steps) : shown;
  trace.gradients.resize(trace.steps.size());
  for (size_t t = 0; t < trace.steps.size(); ++t) {
    trace.gradients[t] = differentiate(d, trace, t);
    check_identities(d, trace, t);
  }
  trace.checks = check_trace(d, trace);
  return trace;
}

}  // namespace lens
