#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>

#include <common/tell.h>
#include <common/utf8.h>
#include <translator/model/files.h>

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

// Says what is wrong in this command's words, before the model is read whole.
void must_go_together(const FlowOptions& o) {
  if (!o.svg.empty() && translator::is_same_place(o.svg, o.out))
    throw UsageError("--svg and --out name one file: " + o.out);
  if (o.depth) return;
  if (!o.versus.empty() && o.model.empty()) throw UsageError("--vs needs a model to compare with");
  if (o.model.empty()) return;
  const translator::Model model = translator::Model::load_description(o.model);
  if (!model.network->attends())
    throw UsageError("the first model must have attention; one without goes behind --vs");
  if (!o.versus.empty()) network_of(model);
  if (!model.recurrent() && !o.init.empty())
    throw UsageError(
        "--init is of recurrent networks: a Transformer of this shape starts as its training did");
  if ((o.text || o.json) && !o.init.empty())
    throw UsageError("--init with a model is of the fresh networks beside it, which only the page has");
}

// What is measured, in the order of the page's controls: one setting is shown first, and without a page it is
// the only one.
class Settings {
 public:
  using AtLength = std::function<FlowResult(int64_t length, const FlowAsked&)>;

  // A Transformer, which is dear to check, does not fade with the length: fewer lengths will do.
  Settings(const FlowOptions& o, const FlowAsked& asked, bool transformer)
      : page_(!o.text && !o.json), asked_(asked), length_(o.length > 0 ? o.length : 30) {
    for (int64_t n = 5; n <= 60; n += transformer && n >= 15 ? 15 : 5) lengths_.push_back(n);
    if (std::find(lengths_.begin(), lengths_.end(), length_) == lengths_.end()) lengths_.push_back(length_);
    std::sort(lengths_.begin(), lengths_.end());
  }
  void add(bool shown, std::function<FlowResult()> measure) {
    if (shown) shown_ = jobs_.size();
    if (page_ || shown) jobs_.push_back(std::move(measure));
  }
  // `shown`: at the length that was asked for.
  void add_lengths(bool shown, const AtLength& measure) {
    for (int64_t n : lengths_) {
      FlowAsked own = asked_;
      own.thorough = shown && n == length_;
      add(own.thorough, [=] { return measure(n, own); });
    }
  }
  size_t shown() const { return shown_; }
  // The last ones are the longest: from behind.
  std::vector<FlowResult> measure() const {
    std::vector<FlowResult> results(jobs_.size());
    run_jobs(
        jobs_.size(),
        [&](size_t i, int) {
          const size_t k = jobs_.size() - 1 - i;
          results[k] = jobs_[k]();
        },
        "settings");
    return results;
  }

 private:
  bool page_;
  FlowAsked asked_;
  int64_t length_;
  std::vector<int64_t> lengths_;
  std::vector<std::function<FlowResult()>> jobs_;
  size_t shown_ = 0;
};

// No model: fresh networks of every cell.
void add_cells(Settings& settings, const FlowOptions& o) {
  std::vector<std::string> cells = {"rnn", "gru", "lstm"};
  if (std::find(cells.begin(), cells.end(), o.cell) == cells.end()) cells.push_back(o.cell);
  for (const std::string& cell : cells)
    for (bool both : {false, true})
      settings.add_lengths(cell == o.cell && both == o.bidirectional,
                           [config = flow_config(cell, both)](int64_t n, const FlowAsked& a) {
                             return flow_fresh(config, n, a);
                           });
}

// A Transformer's sentence, unless a length is asked for, and random words, untrained and trained.
void add_transformer(Settings& settings, const FlowOptions& o, const Subject& subject) {
  auto random = [network = subject.model.transformer()](bool fresh) {
    return [=](int64_t n, const FlowAsked& a) { return transformer_random(*network, fresh, n, a); };
  };
  settings.add_lengths(false, random(true));
  settings.add(o.length == 0, [&subject] { return transformer_sentence(subject); });
  settings.add_lengths(o.length > 0, random(false));
}

// The same of a recurrent model, or of the one that is lent where none is named, whose sentence comes last.
void add_recurrent(Settings& settings, const FlowOptions& o, const Subject& subject, const Seq2Seq* without) {
  const Seq2Seq& trained = *subject.model.recurrent();
  const bool own = !o.model.empty();
  if (own)
    settings.add_lengths(false, [config = trained.config](int64_t n, const FlowAsked& a) {
      return flow_fresh(config, n, a);
    });
  settings.add(own && o.length == 0, [&subject, without] { return flow_sentence(subject, without); });
  settings.add_lengths(own && o.length > 0, [&trained, without](int64_t n, const FlowAsked& a) {
    return flow_trained(trained, without, n, a);
  });
}

FlowTitles titles_of(const FlowOptions& o, const FlowAsked& asked, const std::optional<Subject>& subject,
                     const std::vector<FlowResult>& results, size_t shown) {
  const Seq2Seq* trained = subject ? subject->model.recurrent() : nullptr;
  const auto* transformer = subject ? subject->model.transformer() : nullptr;
  FlowTitles titles;
  titles.model = subject ? subject->name : "";
  if (subject && subject->model.reads.subwords()) titles.pieces = subject->in_words() ? "added" : "shown";
  titles.transformer = transformer != nullptr;
  titles.title = title_of(o, results[shown], titles);
  if (std::any_of(results.begin(), results.end(), [](const FlowResult& r) { return r.weights == "fresh"; }))
    titles.setup = transformer       ? transformer_setup(transformer->config, asked)
                   : o.model.empty() ? flow_setup(flow_config(o.cell, o.bidirectional), asked)
                                     : flow_setup(trained->config, asked);
  titles.seeds = o.seeds;
  titles.versus = !o.versus.empty();
  if (trained)
    titles.without = titles.versus ? fmt::format("{}, trained without attention", o.versus)
                                   : "the same model with its short cut stopped: annotations pass no "
                                     "gradient on, but the last state of each direction does";
  return titles;
}

}  // namespace

int flow(const FlowOptions& o) {
  must_go_together(o);
  if (o.depth) return flow_depth(o);
  Stopwatch watch;
  const bool page = !o.text && !o.json;
  std::optional<Subject> subject;
  std::optional<translator::Model> other;
  if (!o.model.empty() || page) {
    subject = subject_of(o);
    other = model_without(o, *subject);
  }
  FlowAsked asked;
  asked.seeds = o.seeds;
  // A model's shape starts as its training did, fresh ones from weights that keep sizes in balance.
  asked.init = !o.init.empty() ? o.init : o.model.empty() ? "lecun" : "pytorch";
  Settings settings(o, asked, subject && subject->model.transformer());
  if (o.model.empty()) add_cells(settings, o);
  if (subject && subject->model.transformer()) add_transformer(settings, o, *subject);
  if (subject && subject->model.recurrent())
    add_recurrent(settings, o, *subject, other ? &network_of(*other) : nullptr);
  const std::vector<FlowResult> results = settings.measure();
  const FlowResult& shown = results[settings.shown()];

  FlowTitles titles = titles_of(o, asked, subject, results, settings.shown());
  json data = flow_json(results, titles, settings.shown());
  if (shown.weights == "fresh") titles.without = FlowTitles().without;
  if (!o.svg.empty()) write_file(o.svg, flow_svg(shown, titles));
  if (o.json) write_file(o.out, json_text::dump(data) + "\n");
  if (page) write_file(o.out, assemble_page("flow", data));
  FlowChecks checks;
  for (const FlowResult& r : results) checks.add(r.checks);
  const bool to_file = !o.text && o.out != "-";
  if (o.text || to_file) fmt::print("{}", translator::utf8::printable_lines(flow_text(shown, titles)));
  if (to_file) translator::tell("{}: {} settings, {:.1f} s\n", o.out, results.size(), watch.seconds());
  return verdict("a gradient and finite differences differ", checks.worst);
}

}  // namespace lens
