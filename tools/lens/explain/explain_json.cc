#include <algorithm>

#include <gradus/numeric.h>

#include "explain.h"
#include "norms.h"

namespace lens {
namespace {

using gradus::Tensor;

// Entries of a [1, V] tensor.
Tensor chosen(const Tensor& x, const std::vector<int32_t>& ids) {
  if (!x.defined()) return x;
  std::vector<double> v;
  for (int32_t id : ids) v.push_back(x.f64()[id]);
  return Tensor::from({1, static_cast<int64_t>(v.size())}, v, gradus::DType::f64);
}

struct Writer {
  const Subject& subject;
  const Dissection& d;
  const SentenceTrace& trace;
  const ExplainJson& options;
  Numbers number{options.digits};
  Numbers precise{std::max(options.digits, 13)};  // for what a page computes on with

  json model() const {
    const auto& c = subject.model.config;
    const auto& n = c.network;
    return {{"name", subject.name},
            {"source_language", c.source_language},
            {"target_language", c.target_language},
            {"attention", n.attention},
            {"order", d.luong_order() ? "luong" : "bahdanau"},
            {"cell", gradus::nn::cell_name(n.rnn.cell)},
            {"heads", d.anatomy().heads},
            {"key_weight", d.anatomy().key_weight},
            {"scale", precise(d.anatomy().scale)},
            {"temperature", precise(d.anatomy().temperature())},
            {"embedding_dim", n.embedding_dim},
            {"hidden_size", n.hidden_size},
            {"annotation_size", trace.reading.annotations.size(2)},
            {"directions", n.bidirectional() ? 2 : 1},
            {"source_vocabulary", n.source_vocabulary},
            {"target_vocabulary", n.target_vocabulary}};
  }

  json step(size_t t) const {
    const Step& s = trace.steps[t];
    const StepGradients& g = trace.gradients[t];
    const Tensor& p = s.probabilities.value();
    std::vector<int32_t> top = likeliest(p, s.target);
    json words = json::array();
    for (int32_t id : top) words.push_back(word(id));
    return {{"t", t},
            {"previous", t == 0 ? "<s>" : subject.target.pieces[t - 1]},
            {"target", subject.target.pieces[t]},
            {"target_id", s.target},
            {"choice", word(choice(s.logits.value()))},
            {"loss", precise(s.loss.item())},
            {"p_target", number(p.f64()[s.target])},
            {"top", {{"ids", top}, {"words", words}}},
            {"stations", stations(s, g, top)},
            {"heads", heads(s, g)},
            {"paths", paths(g)},
            {"checks", checks(static_cast<int64_t>(t), top)}};
  }

  json summary() const {
    return {{"count", trace.checks.size()},
            {"worst", number(trace.worst())},
            {"tolerance", 1e-6},
            {"loss", number(trace.loss)},
            {"network_loss", number(trace.network_loss)},
            {"path_residual", number(trace.path_residual)},
            {"score_sum", number(trace.score_sum)},
            {"identity_residual", number(trace.identity_residual)}};
  }

  std::string word(int32_t id) const { return subject.model.target.token(id); }

  json stations(const Step& s, const StepGradients& g, const std::vector<int32_t>& top) const {
    Numbers write{options.digits, options.packed ? (s.t == trace.shown ? 4 : 3) : 0};
    json out = json::object();
    for (const std::string& name : station_names(d)) {
      const gradus::Var& x = station(s, name);
      if (!x.defined()) continue;
      bool vocabulary = name == "z" || name == "p";
      Tensor value = vocabulary ? chosen(x.value(), top) : x.value();
      Tensor grad = vocabulary ? chosen(g.at(name), top) : g.at(name);
      json station = {{"title", station_title(name, d.luong_order())}};
      // Annotations and keys are the same at all steps: once, at the top of the trace.
      if (name == "h") {
        station["gradient"] = write.grid(g.full, options.units);
        if (options.paths) {
          station["value_path"] = write.grid(g.value, options.units);
          station["score_path"] = g.score_path ? write.grid(g.score, options.units) : json(nullptr);
        }
      } else {
        if (name != "k") station["value"] = write.grid(value, vocabulary ? 8 : options.units);
        station["gradient"] = write.grid(grad, vocabulary ? 8 : options.units);
      }
      const StationChecks checked = checks_of(trace, s.t, name);
      station["checks"] = {{"count", checked.count},
                           {"worst", Numbers{3}(checked.worst ? checked.worst->error : 0)}};
      out[name] = station;
    }
    return out;
  }

  json heads(const Step& s, const StepGradients& g) const {
    json out = json::array();
    for (int64_t m = 0; m < d.anatomy().heads; ++m) {
      auto row = [&](const Tensor& x) { return x.defined() ? precise(x.row(m)) : json(nullptr); };
      out.push_back({{"scores", row(s.attending.scores.value())},
                     {"weights", row(s.attending.weights.value())},
                     {"score_gradient", row(g.at("e"))},
                     {"weight_gradient", row(g.at("alpha"))},
                     {"gain", row(g.gain)},
                     {"mix", precise(g.mix.f64()[m])}});
    }
    return out;
  }

  json paths(const StepGradients& g) const {
    auto norms = [&](const Tensor& x) { return number(row_norms(x)); };
    Tensor rest = zip(g.neighbours, g.earlier, g.start, [](auto a, auto b, auto c) { return a + (b + c); });
    return {{"score_path_exists", g.score_path}, {"value", norms(g.value)},
            {"score", norms(g.score)},           {"recurrent", norms(rest)},
            {"earlier", norms(g.earlier)},       {"neighbours", norms(g.neighbours)},
            {"start", norms(g.start)},           {"full", norms(g.full)}};
  }

  // [station, row or null, column or null, engine, numeric, error]; a column of logits or p is that of `top`.
  json checks(int64_t t, const std::vector<int32_t>& top) const {
    json out = json::array();
    for (const Compared& c : trace.checks) {
      if (c.step != t) continue;
      int64_t column = c.column;
      if (c.station == "z" || c.station == "p") {
        auto at = std::find(top.begin(), top.end(), static_cast<int32_t>(c.column));
        if (at == top.end()) continue;
        column = at - top.begin();
      } else if (options.packed && column >= options.units) {
        continue;
      }
      auto place = [](int64_t i) { return i < 0 ? json(nullptr) : json(i); };
      out.push_back(
          {c.station, place(c.row), place(column), number(c.engine), number(c.numeric), Numbers{3}(c.error)});
    }
    return out;
  }
};

}  // namespace

int32_t choice(const Tensor& z) {
  int32_t best = gradus::nn::kEos;
  for (int32_t id = 0; id < z.numel(); ++id)
    if (id != gradus::nn::kPad && id != gradus::nn::kBos && z.f64()[id] > z.f64()[best]) best = id;
  return best;
}

json trace_of(const char* kind, const Subject& subject, const json& model) {
  json unknown = json::array();
  for (int32_t id : subject.source_ids) unknown.push_back(id == gradus::nn::kUnk);
  return {{"format", "gradus-lens-trace"},
          {"version", 1},
          {"kind", kind},
          {"model", model},
          {"source", subject.source.pieces},
          {"target", subject.target.pieces},
          {"has_reference", subject.has_reference},
          {"source_unknown", unknown}};
}

json to_json(const Subject& subject, const Dissection& d, const SentenceTrace& trace, const ExplainJson& o) {
  Writer write{subject, d, trace, o};
  Numbers grids{o.digits, o.packed ? 4 : 0};
  json steps = json::array();
  for (size_t t = 0; t < trace.steps.size(); ++t) steps.push_back(write.step(t));
  json out = trace_of("explain", subject, write.model());
  out.update({{"show", {{"step", trace.shown}}},
              {"stations", station_names(d)},
              {"annotations", grids.grid(trace.reading.annotations.value(), o.units)},
              {"keys", grids.grid(trace.steps[0].attending.keys.value(), o.units)},
              {"steps", steps},
              {"checks", write.summary()},
              {"what_if", o.what_if ? what_if_json(subject, d, trace) : json(nullptr)}});
  add_pieces(out, subject);
  if (!out.contains("words")) return out;
  json paths = json::array();
  for (int32_t word = 0; word <= subject.target.word_of.back(); ++word)
    paths.push_back(
        write.paths(gradients_of_word(trace, word, subject.target.word_of, subject.source.word_of)));
  out["words"]["paths"] = paths;
  return out;
}

}  // namespace lens
