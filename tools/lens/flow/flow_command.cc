#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>

#include <common/tell.h>
#include <common/utf8.h>
#include <translator/files.h>

#include "commands.h"
#include "depth/depth.h"
#include "explain/explain.h"
#include "flow.h"
#include "jobs.h"
#include <common/json_text.h>

namespace lens {
namespace {

using gradus::nn::Seq2Seq;

const Seq2Seq& network_of(const translator::Model& model) {
  if (const Seq2Seq* found = model.recurrent()) return *found;
  throw UsageError("--vs compares recurrent translators: one of these models is a Transformer");
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i + 1 < words.size(); ++i) out += (i ? " " : "") + words[i];
  return out;
}

std::string title_of(const FlowOptions& o, const FlowResult& r, const FlowTitles& titles) {
  const std::string& model = titles.model;
  if (!r.source.empty()) return fmt::format("{}: “{}” to “{}”", model, joined(r.source), joined(r.target));
  std::string who = r.weights == "trained" ? model
                    : o.model.empty()      ? "untrained"
                                           : model + "'s shape, untrained";
  return fmt::format(
      "How much gradient reaches each {3}: {0}, {1}, {2} {3}s", who,
      titles.transformer ? std::string("Transformer") : upper(r.cell) + (r.bidirectional ? " both ways" : ""),
      r.length, unit_of(r, titles));
}

// The model that stands for "without", and that it fits.
std::optional<translator::Model> model_without(const FlowOptions& o, const Subject& subject) {
  if (o.versus.empty()) return {};
  std::optional<translator::Model> out = translator::Model::load(o.versus);
  gradus::nn::to(*out->network, gradus::DType::f64);
  if (network_of(*out).attends())
    throw UsageError("the model behind --vs must have been trained with attention \"none\"");
  if (out->source.text() != subject.model.source.text() || out->target.text() != subject.model.target.text())
    throw UsageError("the two models must have one vocabulary");
  return out;
}

}  // namespace

int flow(const FlowOptions& o) {
  if (!o.svg.empty() && translator::is_same_place(o.svg, o.out))
    throw UsageError("--svg and --out name one file: " + o.out);
  if (o.depth) return flow_depth(o);
  Stopwatch watch;
  bool page = !o.text && !o.json;
  bool sentence = !o.model.empty() && o.length == 0;  // shown first
  int64_t length = o.length > 0 ? o.length : 30;
  std::optional<Subject> subject;
  std::optional<translator::Model> other;
  if (!o.versus.empty() && o.model.empty()) throw UsageError("--vs needs a model to compare with");
  if (!o.model.empty() || page) {
    if (!o.model.empty()) {  // say what is wrong in this command's words first
      translator::Model model = translator::Model::load_description(o.model);
      if (!model.network->attends())
        throw UsageError("the first model must have attention; one without goes behind --vs");
      if (!o.versus.empty()) network_of(model);
      if (!model.recurrent() && !o.init.empty())
        throw UsageError(
            "--init is of recurrent networks: a Transformer of this shape starts as its training did");
      if (!page && !o.init.empty())
        throw UsageError("--init with a model is of the fresh networks beside it, which only the page has");
    }
    subject = subject_of(o);
    other = model_without(o, *subject);
  }
  const Seq2Seq* without = other ? &network_of(*other) : nullptr;
  const Seq2Seq* trained = subject ? subject->model.recurrent() : nullptr;
  const auto* transformer = subject ? subject->model.transformer() : nullptr;

  FlowAsked asked;
  asked.seeds = o.seeds;
  // A model's shape starts as its training did, fresh ones from weights that keep sizes in balance.
  asked.init = !o.init.empty() ? o.init : o.model.empty() ? "lecun" : "pytorch";
  std::vector<int64_t> lengths;
  // A Transformer, which is dear to check, does not fade with the length: fewer will do.
  for (int64_t n = 5; n <= 60; n += transformer && n >= 15 ? 15 : 5) lengths.push_back(n);
  if (std::find(lengths.begin(), lengths.end(), length) == lengths.end()) lengths.push_back(length);
  std::sort(lengths.begin(), lengths.end());

  // What is to be measured, in the order of the controls.
  std::vector<std::function<FlowResult()>> jobs;
  size_t show = 0;
  gradus::nn::Seq2SeqConfig shape =
      o.model.empty() || transformer ? flow_config(o.cell, o.bidirectional) : trained->config;
  auto add = [&](bool shown, auto job) {
    if (shown) show = jobs.size();
    if (page || shown) jobs.push_back(job);
  };
  auto add_lengths = [&](bool shown, auto measure) {
    for (int64_t n : lengths) {
      FlowAsked own = asked;
      own.thorough = shown && n == length;
      add(own.thorough, [=] { return measure(n, own); });
    }
  };
  auto add_fresh = [&](bool shown, const gradus::nn::Seq2SeqConfig& config) {
    add_lengths(shown, [config](int64_t n, const FlowAsked& a) { return flow_fresh(config, n, a); });
  };
  if (o.model.empty()) {
    std::vector<std::string> cells = {"rnn", "gru", "lstm"};
    if (std::find(cells.begin(), cells.end(), o.cell) == cells.end()) cells.push_back(o.cell);
    for (const std::string& cell : cells)
      for (bool both : {false, true})
        add_fresh(cell == o.cell && both == o.bidirectional, flow_config(cell, both));
  } else if (transformer) {
    for (bool fresh : {true, false}) {
      if (!fresh) add(sentence, [&] { return transformer_sentence(*subject); });
      add_lengths(!fresh && !sentence, [transformer, fresh](int64_t n, const FlowAsked& a) {
        return transformer_random(*transformer, fresh, n, a);
      });
    }
  } else {
    add_fresh(false, shape);
  }
  if (trained) {
    add(sentence, [&] { return flow_sentence(*subject, without); });
    add_lengths(!o.model.empty() && !sentence,
                [&](int64_t n, const FlowAsked& a) { return flow_trained(*trained, without, n, a); });
  }
  std::vector<FlowResult> results(jobs.size());
  run_jobs(
      jobs.size(),
      [&](size_t i, int) {
        size_t k = jobs.size() - 1 - i;  // the last ones are the longest: from behind
        results[k] = jobs[k]();
      },
      "settings");

  FlowTitles titles;
  titles.model = subject ? subject->name : "";
  if (subject && subject->model.reads.subwords()) titles.pieces = subject->in_words() ? "added" : "shown";
  titles.transformer = transformer != nullptr;
  titles.title = title_of(o, results[show], titles);
  if (std::any_of(results.begin(), results.end(), [](const FlowResult& r) { return r.weights == "fresh"; }))
    titles.setup = transformer ? transformer_setup(transformer->config, asked) : flow_setup(shape, asked);
  titles.seeds = o.seeds;
  titles.versus = other.has_value();
  std::string stopped =
      "the same model with its short cut stopped: annotations pass no gradient on, but the last state of each "
      "direction does";
  if (trained) titles.without = other ? fmt::format("{}, trained without attention", o.versus) : stopped;
  json data = flow_json(results, titles, show);
  if (results[show].weights == "fresh") titles.without = FlowTitles().without;
  if (!o.svg.empty()) write_file(o.svg, flow_svg(results[show], titles));
  if (o.json) write_file(o.out, json_text::dump(data) + "\n");
  if (page) write_file(o.out, assemble_page("flow", data));
  FlowChecks checks;
  for (const FlowResult& r : results) checks.add(r.checks);
  bool to_file = !o.text && o.out != "-";
  if (o.text || to_file)
    fmt::print("{}", translator::utf8::printable_lines(flow_text(results[show], titles)));
  if (to_file) translator::tell("{}: {} settings, {:.1f} s\n", o.out, results.size(), watch.seconds());
  return verdict("a gradient and finite differences differ", checks.worst);
}

}  // namespace lens
