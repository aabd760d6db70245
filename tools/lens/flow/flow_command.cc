#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>

#include <gradus/parallel.h>
#include <common/tell.h>
#include <common/utf8.h>

#include "commands.h"
#include "explain/explain.h"
#include "flow.h"
#include <common/json_text.h>

namespace lens {
namespace {

using gradus::nn::Seq2Seq;

const Seq2Seq& network_of(const translator::Model& model) {
  if (const Seq2Seq* found = model.recurrent()) return *found;
  throw UsageError("flow is for recurrent translators: this model is a Transformer");
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

std::string title_of(const FlowOptions& o, const FlowResult& r, const std::string& model) {
  if (!r.source.empty()) return fmt::format("{}: “{}” to “{}”", model, joined(r.source), joined(r.target));
  std::string who = r.weights == "trained" ? model
                    : o.model.empty()      ? "untrained"
                                           : model + "'s shape, untrained";
  return fmt::format("How much gradient reaches each word: {}, {}, {} words", who,
                     upper(r.cell) + (r.bidirectional ? " both ways" : ""), r.length);
}

// The model that stands for "without", and that it fits.
std::optional<translator::Model> model_without(const FlowOptions& o, const Subject& subject) {
  if (o.versus.empty()) return {};
  if (o.model.empty()) throw UsageError("--vs needs a model to compare with");
  std::optional<translator::Model> out = translator::Model::load(o.versus);
  gradus::nn::to(*out->network, gradus::DType::f64);
  if (network_of(*out).attends())
    throw UsageError("the model behind --vs must have been trained with attention \"none\"");
  if (out->source.size() != subject.model.source.size() || out->target.size() != subject.model.target.size())
    throw UsageError("the two models must have one vocabulary");
  return out;
}

}  // namespace

int flow(const FlowOptions& o) {
  auto started = std::chrono::steady_clock::now();
  bool page = !o.text && !o.json;
  bool sentence = !o.model.empty() && o.length == 0;  // shown first
  int64_t length = o.length > 0 ? o.length : 30;
  std::optional<Subject> subject;
  std::optional<translator::Model> other;
  if (!o.model.empty() || page) {
    SentenceOptions s;
    s.model = o.model;
    s.source = o.source;
    s.target = o.target;
    if (!o.model.empty()) {  // say what is wrong in this command's words first
      translator::Model model = translator::Model::load_description(o.model);
      if (!network_of(model).attends())
        throw UsageError("the first model must have attention; one without goes behind --vs");
    }
    subject = subject_of(s);
    other = model_without(o, *subject);
  } else if (!o.versus.empty()) {
    throw UsageError("--vs needs a model to compare with");
  }
  const Seq2Seq* without = other ? &network_of(*other) : nullptr;
  const Seq2Seq* trained = subject ? &subject->network() : nullptr;

  FlowAsked asked;
  asked.seeds = o.seeds;
  // A model's shape starts as its training did, fresh ones from weights that keep sizes in balance.
  asked.init = !o.init.empty() ? o.init : o.model.empty() ? "lecun" : "pytorch";
  FlowAsked thorough = asked;
  thorough.thorough = true;
  std::vector<int64_t> lengths;
  for (int64_t n = 5; n <= 60; n += 5) lengths.push_back(n);
  if (length % 5 != 0) lengths.push_back(length);
  std::sort(lengths.begin(), lengths.end());

  // What is to be measured, in the order of the controls.
  std::vector<std::function<FlowResult()>> jobs;
  size_t show = 0;
  gradus::nn::Seq2SeqConfig shape = o.model.empty() ? flow_config(o.cell, o.bidirectional) : trained->config;
  auto add_fresh = [&](const gradus::nn::Seq2SeqConfig& config, bool shown) {
    for (int64_t n : lengths) {
      bool now = shown && n == length;
      if (now) show = jobs.size();
      if (page || now) jobs.push_back([=] { return flow_fresh(config, n, now ? thorough : asked); });
    }
  };
  if (o.model.empty()) {
    std::vector<std::string> cells = {"rnn", "gru", "lstm"};
    if (std::find(cells.begin(), cells.end(), o.cell) == cells.end()) cells.push_back(o.cell);
    for (const std::string& cell : cells)
      for (bool both : {false, true}) {
        bool shown = cell == o.cell && both == o.bidirectional;
        if (page || shown) add_fresh(flow_config(cell, both), shown);
      }
  } else if (page) {
    add_fresh(shape, false);
  }
  if (trained) {
    if (sentence) show = jobs.size();
    if (page || sentence)
      jobs.push_back([&] {
        std::vector<int32_t> target = subject->target_ids;
        target.push_back(gradus::nn::kEos);
        FlowResult r = flow_sentence(*trained, without, subject->source_ids, target);
        r.source = subject->source;
        r.target = subject->target;
        return r;
      });
    for (int64_t n : lengths) {
      bool now = !o.model.empty() && !sentence && n == length;
      if (now) show = jobs.size();
      if (page || now)
        jobs.push_back([&, n, now] { return flow_trained(*trained, without, n, now ? thorough : asked); });
    }
  }
  std::vector<FlowResult> results(jobs.size());
  std::atomic<size_t> next{0};
  {
    gradus::ThreadPool pool(std::min(gradus::available_threads(), static_cast<int>(jobs.size())));
    pool.run([&](int) {  // the last ones are the longest: from behind
      for (size_t i = next++; i < jobs.size(); i = next++)
        results[jobs.size() - 1 - i] = jobs[jobs.size() - 1 - i]();
    });
  }

  FlowTitles titles;
  titles.model = subject ? subject->name : "";
  titles.title = title_of(o, results[show], titles.model);
  titles.setup = flow_setup(shape, asked);
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
  auto code = [&] { return verdict("a gradient and finite differences differ", checks.worst); };
  if (o.out == "-" && !o.text) return code();
  fmt::print("{}", translator::utf8::printable_lines(flow_text(results[show], titles)));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (!o.text) translator::tell("{}: {} settings, {:.1f} s\n", o.out, results.size(), seconds);
  return code();
}

}  // namespace lens
