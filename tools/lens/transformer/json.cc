#include <algorithm>

#include <gradus/ops.h>

#include "norms.h"
#include "output.h"

namespace lens::transformer {
namespace {

using gradus::Tensor;

// Numbers of gradients that a page may hold; more steps or units than that get fewer columns each.
constexpr int64_t kMostNumbers = 110000;
// And of gradients of scores, whose number grows with the third power of the length. The steps nearest to the
// one that is shown come first; of others a page has the ways alone.
constexpr int64_t kMostScores = 150000;

struct Writer {
  const Explained& x;
  const ExplainJson& options;
  const Trace& trace = x.trace;
  Numbers number = {options.digits};
  Numbers precise = {std::max(options.digits, 13)};
  Numbers values = {options.digits, options.packed ? 4 : 0};
  Numbers gradients = {options.digits, options.packed ? 3 : 0};
  Numbers maps = {options.digits, options.packed ? 5 : 0};  // a page computes on with them
  const std::vector<bool> whole =
      options.packed ? steps_taken() : std::vector<bool>(trace.steps.size(), true);
  int64_t units = options.packed ? columns() : options.units;
  const translator::Segmented inputs = inputs_of(x.subject.target);

  // Which steps a page has whole.
  std::vector<bool> steps_taken() const {
    const int64_t T = static_cast<int64_t>(trace.steps.size());
    std::vector<bool> out(trace.steps.size());
    int64_t sum = 0;
    for (int64_t k = 0; k < 2 * T; ++k) {  // shown, one before, one after, two before, ...
      const int64_t t = trace.shown + (k % 2 ? -(k + 1) / 2 : k / 2);
      if (t < 0 || t >= T) continue;
      for (const Sublayer& s : trace.run.parts)
        if (attends(s.part)) {
          const gradus::Shape& shape = s[kScores].shape();
          sum += shape[1] * rows_of(static_cast<size_t>(t), s, {"e", "", {kQ}}) * shape[3];
        }
      if (k > 0 && sum > kMostScores) break;
      out[static_cast<size_t>(t)] = true;
    }
    return out;
  }

  // How many columns of each gradient there is room for, in the steps that are not shown first.
  int64_t columns() const {
    auto numbers = [&](int64_t most) {
      int64_t sum = 0;
      for (size_t t = 0; t < trace.steps.size(); ++t)
        for (const Sublayer& s : trace.run.parts)
          for (const Station& one : whole[t] ? drawn(s) : std::vector<Station>())
            if (!heads(one)) sum += rows_of(t, s, one) * std::min(most, s[one.fields[0]].size(2));
      return sum;
    };
    int64_t most = options.units;
    while (most > 4 && numbers(most) > kMostNumbers) --most;
    return most;
  }

  // A page has no rows that the causal mask keeps a step's loss from.
  int64_t rows_of(size_t t, const Sublayer& s, const Station& one) const {
    const int64_t all = s[one.fields[0]].size(0);
    const bool of_target = in_decoder(s.part) &&
                           !(s.part == Part::cross && std::string("mkv").find(one.name) != std::string::npos);
    return options.packed && x.d.causal() && of_target ? std::min(all, static_cast<int64_t>(t) + 1) : all;
  }

  static bool heads(const Station& s) { return s.fields[0] == kScores || s.fields[0] == kWeights; }

  // A page has what goes on to the next part there, and at W_O's output what arrives at the sum.
  std::vector<Station> drawn(const Sublayer& s) const {
    std::vector<Station> out = x.d.stations(s);
    const bool last = s.part == Part::encoder_ff && s.layer + 1 == x.d.network().config.num_layers;
    if (options.packed && x.d.norm_first() && !last)
      std::erase_if(out, [](const Station& one) { return one.fields[0] == kSum; });
    if (options.packed) std::erase_if(out, [](const Station& one) { return one.fields[0] == kOut; });
    return out;
  }

  std::string word(int32_t id) const { return x.subject.model.target.token(id); }

  json model() const {
    const auto& c = x.subject.model.config;
    const auto& n = x.d.network().config;
    return {{"name", x.subject.name},
            {"source_language", c.source_language},
            {"target_language", c.target_language},
            {"layers", n.num_layers},
            {"heads", n.num_heads},
            {"units", n.d_model},
            {"hidden", x.d.network().decoder.layers[0].feed_forward.linear1.weight.shape()[0]},
            {"norm_first", n.norm_first},
            {"activation", n.activation},
            {"positions", n.positions},
            {"temperature", precise(n.temperature)},
            {"causal", x.d.causal()},
            {"trained_causal", n.causal},
            {"source_vocabulary", n.source_vocabulary},
            {"target_vocabulary", n.target_vocabulary}};
  }

  // The values of a part, which are the same at all steps.
  json part(size_t p) const {
    static const char* const kNames[] = {"encoder", "encoder-ff", "decoder", "cross", "decoder-ff", "output"};
    const Sublayer& s = trace.run.parts[p];
    json stations = json::object();
    for (const Station& one : x.d.stations(s)) {
      json station = {{"title", one.title}};
      if (!heads(one)) station["value"] = values.grid(s[one.fields[0]].value(), options.units);
      stations[one.name] = station;
    }
    json out = {{"sublayer", kNames[static_cast<size_t>(s.part)]},
                {"layer", s.layer},
                {"name", name_of(s)},
                {"rows", in_decoder(s.part) ? "target" : "source"},
                {"stations", stations},
                {"gamma", x.d.norm(s) ? number(x.d.norm(s)->weight.value()) : json(nullptr)}};
    if (!attends(s.part)) return out;
    out["columns"] = s.part == Part::decoder_self ? "target" : "source";
    out["masked"] = x.d.mask(s).defined();
    out["scores"] = maps.array(by_head(s[kScores].value()));
    out["weights"] = maps.array(by_head(s[kWeights].value()));
    return out;
  }

  static Tensor by_head(const Tensor& t) { return t.reshape(t.shape().without(0)); }

  json gradients_of(size_t t, size_t p) const {
    const Sublayer& s = trace.run.parts[p];
    const PartGradients& g = trace.steps[t].parts[p];
    if (!whole[t]) return {{"ways", ways({t}, p)}};
    json stations = json::object();
    for (const Station& one : drawn(s))
      if (!heads(one))
        stations[one.name] = gradients.grid(g.of(one).rows(0, rows_of(t, s, one)),
                                            static_cast<int64_t>(t) == trace.shown ? options.units : units);
    json out = {{"gradients", stations}, {"ways", ways({t}, p)}, {"checked", checked(t, p)}};
    if (g.norm.defined()) out["norm"] = number_rows(g.norm);
    if (!attends(s.part)) return out;
    const int64_t rows = rows_of(t, s, {"e", "", {kQ}});
    out["score_gradient"] = gradients.array(gradus::slice(by_head(g[kScores]), 1, 0, rows).value());
    out["mix"] = gradients.array(g.mix);
    if (!options.packed) out["gain"] = gradients.array(g.gain);
    return out;
  }

  json number_rows(const Tensor& rows) const {
    return Numbers{options.digits, options.packed ? 3 : 0}.array(rows);
  }

  static Tensor plus(const Tensor& a, const Tensor& b, double sign) {
    Tensor out = a.clone();
    for (int64_t i = 0; i < out.numel(); ++i) out.f64()[i] += sign * b.f64()[i];
    return out;
  }

  // Lengths by row of what came which way, and of all of it, for the losses of these steps added up; with
  // `by_word` the rows of a word's pieces are added, too.
  json ways(const std::vector<size_t>& steps, size_t p, bool by_word = false) const {
    const Sublayer& s = trace.run.parts[p];
    if (s.part == Part::output) return json::object();
    const Numbers write{options.packed ? 4 : 17};
    const std::vector<int32_t>& words = in_decoder(s.part) ? inputs.word_of : x.subject.source.word_of;
    auto lengths = [&](const Tensor& rows, const std::vector<int32_t>& word_of) {
      return write(
          row_norms(by_word ? rows_of_words(rows.reshape({rows.size(0), rows.size(2)}), word_of) : rows));
    };
    auto added = [&](auto&& of_step) {
      Tensor sum = of_step(steps[0]);
      for (size_t i = 1; i < steps.size(); ++i) sum = plus(sum, of_step(steps[i]), 1);
      return sum;
    };
    auto of = [&](Field f) { return added([&](size_t t) { return trace.steps[t].parts[p][f]; }); };
    json rows = {{"residual", lengths(of(kResidual), words)},
                 {attends(s.part) ? "query" : "through", lengths(of(kToQuery), words)},
                 {"full", lengths(of(kX), words)}};
    if (attends(s.part) && s.part != Part::cross) {
      rows["key"] = lengths(of(kToKey), words);
      rows["value"] = lengths(of(kToValue), words);
    }
    if (s.part != Part::cross) return {{"x", rows}};
    const std::vector<int32_t>& read = x.subject.source.word_of;
    const Tensor memory = added([&](size_t t) { return trace.steps[t].memory; }), key = of(kToKey),
                 value = of(kToValue);
    return {{"m",
             {{"value", lengths(value, read)},
              {"key", lengths(key, read)},
              {"later", lengths(plus(memory, plus(key, value, 1), -1), read)},
              {"full", lengths(memory, read)}}},
            {"x", rows}};
  }

  static json shares(const Shares& of, const Numbers& write) {
    return {
        {"rollout", write(of.rollout)}, {"weighted", write(of.weighted)}, {"gradient", write(of.gradient)}};
  }

  // What pages show of words, where pieces are put together: the ways of each target word's loss, and each
  // step's shares.
  void add_words(json& out) const {
    add_pieces(out, x.subject);
    if (!out.contains("words")) return;
    const std::vector<int32_t>& said = x.subject.target.word_of;
    json by_word = json::array(), shared = json::array();
    for (int32_t word = 0; word <= said.back(); ++word) {
      std::vector<size_t> steps;
      for (size_t t = 0; t < said.size(); ++t)
        if (said[t] == word) steps.push_back(t);
      json parts = json::array();
      for (size_t p = 0; p < trace.run.parts.size(); ++p) parts.push_back(ways(steps, p, true));
      by_word.push_back(parts);
    }
    for (size_t t = 0; t < trace.steps.size(); ++t)
      shared.push_back(shares(shares_of(trace, static_cast<int64_t>(t), x.subject.source.word_of),
                              Numbers{options.packed ? 5 : 17}));
    out["words"]["ways"] = by_word;
    out["words"]["shares"] = shared;
  }

  // How many gradients of a step were compared, by station, and the worst error.
  json checked(size_t t, size_t p) const {
    json out = json::object();
    for (const Compared& c : trace.checks) {
      if (c.part != p || c.step != static_cast<int64_t>(t)) continue;
      std::string name = c.station.substr(0, c.station.find(','));
      json& one = out[name];
      if (one.is_null()) one = {{"count", 0}, {"worst", 0}};
      one["count"] = one["count"].get<int64_t>() + 1;
      const double before = one["worst"].is_number() ? one["worst"].get<double>() : std::nan("");
      one["worst"] = Numbers{3}(gradus::worse(before, c.error));
    }
    return out;
  }

  json step(size_t t) const {
    const int64_t T = trace.run.logits.size(0), V = trace.run.logits.size(2), at = static_cast<int64_t>(t);
    const Tensor z = trace.run.logits.value().reshape({T, V}).row(at),
                 p = trace.run.probabilities.value().reshape({T, V}).row(at),
                 dz = trace.steps[t].logits.reshape({T, V}).row(at);
    const int32_t target = x.d.target()[t];
    const std::vector<int32_t> top = likeliest(p, target);
    json words = json::array(), logits = json::array(), chances = json::array(), slopes = json::array();
    for (int32_t id : top) {
      words.push_back(word(id));
      logits.push_back(number(z.f64()[id]));
      chances.push_back(number(p.f64()[id]));
      slopes.push_back(number(dz.f64()[id]));
    }
    json parts = json::array();
    for (size_t i = 0; i < trace.run.parts.size(); ++i) parts.push_back(gradients_of(t, i));
    const Gradients& g = trace.steps[t];
    const Numbers share{options.packed ? 5 : 17};
    return {
        {"t", t},
        {"previous", t == 0 ? "<s>" : x.subject.target.pieces[t - 1]},
        {"target", x.subject.target.pieces[t]},
        {"target_id", target},
        {"choice", word(choice(z))},
        {"loss", precise(trace.run.losses[t].item())},
        {"p_target", number(p.f64()[target])},
        {"top", {{"ids", top}, {"words", words}, {"logits", logits}, {"p", chances}, {"gradient", slopes}}},
        {"parts", parts},
        {"words",
         {{"source", share(row_norms(g.source.reshape({g.source.size(0), g.source.size(2)})))},
          {"memory", share(row_norms(g.memory.reshape({g.memory.size(0), g.memory.size(2)})))},
          {"target", share(row_norms(g.target.reshape({T, g.target.size(2)})))},
          {"later", number(gradient_from_later(trace, at))}}},
        {"shares", shares(shares_of(trace, at), share)},
        {"checks", whole[t] ? checks(at, top) : json::array()}};
  }

  // [part, station, head, row, column, engine, differences, error]; a column of logits is that of `top`.
  json checks(int64_t t, const std::vector<int32_t>& top) const {
    json out = json::array();
    auto place = [](int64_t i) { return i < 0 ? json(nullptr) : json(i); };
    for (const Compared& c : trace.checks) {
      if (c.step != t) continue;
      int64_t column = c.column;
      if (c.station == "z") {
        const auto at = std::find(top.begin(), top.end(), static_cast<int32_t>(c.column));
        if (at == top.end()) continue;
        column = at - top.begin();
      }
      out.push_back({c.part, c.station, place(c.head), place(c.row), place(column), number(c.engine),
                     number(c.numeric), Numbers{2}(c.error)});
    }
    return out;
  }
};

}  // namespace

json to_json(const Explained& x, const ExplainJson& options) {
  const Trace& trace = x.trace;
  Writer write{x, options};
  json parts = json::array(), steps = json::array();
  for (size_t p = 0; p < trace.run.parts.size(); ++p) parts.push_back(write.part(p));
  for (size_t t = 0; t < trace.steps.size(); ++t) steps.push_back(write.step(t));
  const Spot most = strongest(trace, trace.shown);
  json out = trace_of("explain-transformer", x.subject, write.model());
  out.update({{"show",
               {{"step", trace.shown},
                {"part", trace.spot.part},
                {"head", trace.spot.head < 0 ? json(nullptr) : json(trace.spot.head)},
                {"row", row_of(trace, trace.shown, trace.spot)},
                {"largest", most.part == trace.spot.part && most.head == trace.spot.head}}},
              {"parts", parts},
              {"steps", steps},
              {"checks",
               {{"count", trace.checks.size()},
                {"worst", write.number(trace.worst())},
                {"tolerance", 1e-6},
                {"loss", write.number(trace.loss)},
                {"network_loss", x.d.as_trained() ? write.number(trace.network_loss) : json(nullptr)},
                {"way_residual", write.number(trace.way_residual)},
                {"score_sum", write.number(trace.score_sum)},
                {"identity_residual", write.number(trace.identity_residual)},
                {"norm_residual", write.number(trace.norm_residual)}}},
              {"what_if", options.what_if ? what_if_json(x) : json(nullptr)}});
  write.add_words(out);
  return out;
}

}  // namespace lens::transformer
