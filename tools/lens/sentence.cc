#include "sentence.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <gradus/numeric.h>
#include <gradus/ops.h>
#include <gradus/parallel.h>

namespace lens {
namespace {

using namespace gradus;

// Of differences, whose error is of order step^8. The smaller ones are for functions with a kink within reach (relu,
// maxout), which no large step may cross: the first that agrees counts, else the one that comes closest.
constexpr double kSteps[] = {1e-2, 2.5e-3, 2e-4, 1e-5};
constexpr int64_t kElements = 16;  // of a station that are checked one by one

double largest(const Tensor& t) {
  double m = 0;
  for (double x : t.to_vector()) m = std::max(m, std::abs(x));
  return m;
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.numel(); ++i) sum += a.f64()[i] * b.f64()[i];
  return sum;
}

// The engine's number beside differences of f.
Compared compare(const std::string& name, const Step& step, int64_t row, int64_t column, double engine,
                 double scale, const std::function<double(double)>& f) {
  Compared best;
  for (double h : kSteps) {
    double numeric = derivative(f, h);
    Compared c{
        name, step.t, row, column, engine, numeric, relative_error(engine, numeric, scale, step.loss.item())};
    if (h == kSteps[0] || !(c.error >= best.error)) best = c;
    if (best.error < 1e-7) break;
  }
  return best;
}

// A direction of length 1 with entries of one size: no unit is left out.
Tensor direction(int64_t n, Rng& rng) {
  Tensor v({n}, DType::f64);
  for (int64_t i = 0; i < n; ++i)
    v.f64()[i] = (rng.next_u32() & 1 ? 1 : -1) / std::sqrt(static_cast<double>(n));
  return v;
}

Tensor moved(const Tensor& x, int64_t offset, const Tensor& direction, double by) {
  Tensor y = x.clone();
  for (int64_t i = 0; i < direction.numel(); ++i) y.f64()[offset + i] += by * direction.f64()[i];
  return y;
}

Var& slot(Step& s, const std::string& name) { return const_cast<Var&>(station(s, name)); }

struct StationInfo {
  const char* name;
  Stage made;
};
constexpr StationInfo kStations[] = {
    {"q", Stage::projected},   {"k", Stage::keys},         {"u", Stage::hidden}, {"e", Stage::scores},
    {"alpha", Stage::weights}, {"c", Stage::context},      {"s", Stage::state},  {"a", Stage::readout},
    {"z", Stage::logits},      {"p", Stage::probabilities}};

// Everything about one step's loss.
class StepChecker {
 public:
  StepChecker(const Dissection& d, const SentenceTrace& trace, size_t t)
      : d_(d), step_(trace.steps[t]), grads_(trace.gradients[t]), rng_(t) {}

  std::vector<Compared> run() {
    elements("s_prev", grads_.at("s_prev"), 0, [](Step& s) -> Var& { return s.state_before; });
    for (const StationInfo& info : kStations) {
      Tensor g = grads_.at(info.name);
      if (!g.defined()) continue;
      std::string name = info.name;
      auto place = [name](Step& s) -> Var& { return slot(s, name); };
      size_t after = position(info.made) + 1;
      if (name == "p") probability(g);
      else if (name == "k" || name == "u") rows(name, g, after, place);
      else elements(name, g, after, place);
    }
    if (grads_.score_path)
      rows("h, score path", grads_.score, position(Stage::keys),
           [](Step& s) -> Var& { return s.score_annotations; });
    rows("h, value path", grads_.value, position(Stage::context),
         [](Step& s) -> Var& { return s.value_annotations; });
    return std::move(checks_);
  }

 private:
  using Place = std::function<Var&(Step&)>;

  size_t position(Stage stage) const {
    return static_cast<size_t>(std::find(d_.stages().begin(), d_.stages().end(), stage) -
                               d_.stages().begin());
  }

  double loss_with(const Place& place, const Tensor& value, size_t from) const {
    Step s = step_;
    place(s) = value;
    if (from < d_.stages().size() && from <= position(Stage::logits)) d_.compute(s, from, Stage::logits);
    return exact_loss(s.logits.value(), s.target);
  }

  // Element by element, evenly spread where there are many; of the logits the likeliest and the right one.
  void elements(const std::string& name, const Tensor& g, size_t from, const Place& place) {
    Step own = step_;
    Tensor x = place(own).value(), one = Tensor::ones({1}, DType::f64);
    double scale = largest(g);
    int64_t n = g.numel(), columns = g.size(-1);
    std::vector<int64_t> which;
    if (name == "z") {
      for (int64_t i = 0; i < n; ++i) which.push_back(i);
      std::stable_sort(which.begin(), which.end(),
                       [&](int64_t a, int64_t b) { return x.f64()[a] > x.f64()[b]; });
      which.resize(static_cast<size_t>(std::min<int64_t>(n, 8)));
      if (std::find(which.begin(), which.end(), step_.target) == which.end()) which.back() = step_.target;
    } else {
      int64_t count = std::min(n, kElements);
      for (int64_t i = 0; i < count; ++i) which.push_back(i * n / count);
    }
    for (int64_t i : which)
      checks_.push_back(compare(name, step_, i / columns, i % columns, g.f64()[i], scale, [&](double by) {
        return loss_with(place, moved(x, i, one, by), from);
      }));
  }

  // Row by row of [S, 1, n], each along one direction.
  void rows(const std::string& name, const Tensor& g, size_t from, const Place& place) {
    Step own = step_;
    Tensor x = place(own).value();
    double scale = largest(g);
    int64_t n = g.size(-1), count = g.numel() / n;
    Tensor v = direction(n, rng_), flat = g.reshape({count, n});
    for (int64_t j = 0; j < count; ++j)
      checks_.push_back(compare(name, step_, j, -1, dot(flat.row(j), v), scale, [&](double by) {
        return loss_with(place, moved(x, j * n, v, by), from);
      }));
  }

  // L = -log p_target, whatever the others are. In parts of p, as the logarithm bends at a distance of p: dL/dlog p = -1.
  void probability(const Tensor& g) {
    double p = step_.probabilities.value().f64()[step_.target];
    Compared c = compare("p", step_, 0, step_.target, g.f64()[step_.target] * p, 1,
                         [&](double by) { return -std::log(p * (1 + by)); });
    c.engine /= p;
    c.numeric /= p;
    checks_.push_back(c);
  }

  const Dissection& d_;
  const Step& step_;
  const StepGradients& grads_;
  Rng rng_;
  std::vector<Compared> checks_;
};

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
  for (const StationInfo& info : kStations)
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
  for (const StationInfo& info : kStations) note(info.name, station(step, info.name));

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
    trace.path_residual = std::max(trace.path_residual, std::abs(sum - g.full.f64()[i]));
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
      trace.identity_residual = std::max(trace.identity_residual, std::abs(e.f64()[i] - formula));
    }
    trace.score_sum = std::max(trace.score_sum, std::abs(sum));
  }
}

// The whole gradient of every L_t by h_j, along one direction: the states are shifted as the encoder
// makes them, and everything after is computed anew.
std::vector<Compared> check_annotation(const Dissection& d, const SentenceTrace& trace, int64_t j) {
  Rng rng(static_cast<uint64_t>(j), 1);
  std::vector<Compared> out;
  int64_t width =
      static_cast<int64_t>(d.network().encoder.rnn.directions()) * d.network().encoder.rnn.shape.hidden_size;
  Tensor v = direction(width, rng);
  std::map<double, std::vector<double>> losses;  // by how far, for all steps at once
  auto loss = [&](size_t t, double by) {
    std::vector<double>& all = losses[by];
    if (all.empty()) {
      Reading reading;
      std::vector<Step> steps;
      d.run(reading, steps, j, moved(Tensor::zeros({width}, DType::f64), 0, v, by));
      for (const Step& s : steps) all.push_back(exact_loss(s.logits.value(), s.target));
    }
    return all[t];
  };
  for (size_t t = 0; t < trace.steps.size(); ++t) {
    const Tensor& full = trace.gradients[t].full;
    out.push_back(compare("h", trace.steps[t], j, -1, dot(full.row(j), v), largest(full),
                                   [&](double by) { return loss(t, by); }));
  }
  return out;
}

}  // namespace

double relative_error(double a, double b, double scale, double loss) {
  return std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1e-4 * scale, 1e-5 * loss, 1e-9});
}

double derivative(const std::function<double(double)>& f, double h) {
  auto across = [&](double k) { return f(k * h) - f(-k * h); };
  return (4.0 / 5 * across(1) - 1.0 / 5 * across(2) + 4.0 / 105 * across(3) - 1.0 / 280 * across(4)) / h;
}

Tensor StepGradients::at(const std::string& name) const {
  for (const auto& [key, g] : stations)
    if (key == name) return g;
  return {};
}

double SentenceTrace::worst() const {
  double w = 0;
  for (const Compared& c : checks) {
    if (std::isnan(c.error)) return c.error;
    w = std::max(w, c.error);
  }
  return w;
}

std::vector<std::string> station_names(const Dissection& d) {
  std::vector<std::string> out = {"s_prev", "h"};
  for (Stage stage : d.stages())
    for (const StationInfo& info : kStations)
      if (info.made == stage) out.push_back(info.name);
  return out;
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

SentenceTrace trace_sentence(const Dissection& d) {
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
  trace.gradients.resize(trace.steps.size());
  size_t T = trace.steps.size(), S = d.source().size();
  for (size_t t = 0; t < T; ++t) {
    trace.gradients[t] = differentiate(d, trace, t);
    check_identities(d, trace, t);
  }
  // Steps and words on all processors; each has its own place, so that the order is always the same.
  std::vector<std::vector<Compared>> found(T + S);
  ThreadPool pool(std::min(available_threads(), static_cast<int>(T)));
  pool.run([&](int worker) {
    NoGrad guard;
    for (size_t k = static_cast<size_t>(worker); k < T + S; k += static_cast<size_t>(pool.size()))
      found[k] =
          k < T ? StepChecker(d, trace, k).run() : check_annotation(d, trace, static_cast<int64_t>(k - T));
  });
  for (const auto& checks : found) trace.checks.insert(trace.checks.end(), checks.begin(), checks.end());
  return trace;
}

}  // namespace lens
