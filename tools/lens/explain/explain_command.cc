#include <fmt/core.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <common/tell.h>
#include <common/terminal.h>

#include "commands.h"
#include "explain.h"
#include "transformer/output.h"
#include "jobs.h"

namespace lens {

std::string own_model(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  // Beside the installed program, wherever that was moved; in the source tree; where it should have gone.
  fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  fs::path moved = program.parent_path() / fs::path(LENS_DATA).lexically_relative(LENS_BIN) / name;
  for (const fs::path& place : {moved, fs::path(LENS_MODELS) / name, fs::path(LENS_DATA) / name})
    if (fs::exists(place / "config.json", ignored)) return place.lexically_normal().string();
  gradus::fail("lens", "its own model is gone; name another one (translator train makes them)");
}

namespace {

// ./model, /tmp/model and model/ are places, whether there is anything or not.
bool is_written_as_path(const std::string& word) {
  return word.find(' ') == std::string::npos &&
         (word.starts_with("/") || word.starts_with("./") || word.starts_with("../") || word.ends_with("/"));
}

}  // namespace

void take_words(SentenceOptions& o, const std::vector<std::string>& words) {
  std::error_code ignored;
  if (words.size() == 2) {
    o.model = words[0];
    o.source = words[1];
  } else if (words.size() == 1) {
    const bool there = std::filesystem::is_directory(words[0], ignored);
    (there || is_written_as_path(words[0]) ? o.model : o.source) = words[0];
  }
}

Subject subject_of(const SentenceOptions& o) {
  if (!o.model.empty() && o.transformer)
    throw UsageError(
        fmt::format("--transformer: it stands for a model of its own; {} is named already", o.model));
  if (!o.model.empty()) return make_subject(o.model, o.source, o.target, o.pieces);
  return make_subject(translator::Model::load(own_model(o.transformer ? "model-transformer" : "model")),
                      o.transformer ? "the small Transformer" : "the small model", o.source, o.target,
                      o.pieces);
}

int64_t step_of(const SentenceOptions& o, const Subject& subject) {
  const size_t steps = subject.target.pieces.size();
  if (o.step > static_cast<int>(steps))
    throw UsageError(fmt::format("--step {}: the target has {} {}, </s> included", o.step, steps,
                                 subject.model.config.tokens()));
  return o.step - 1;
}

int verdict(const std::string& what, double worst, double allowed) {
  if (worst < allowed) return 0;
  translator::tell("lens: {} by {:.1e}: less than {:.0e} is allowed\n", what, worst, allowed);
  return 1;
}

const std::vector<std::string>& explain_sublayers() {
  static const std::vector<std::string> all = {"encoder", "decoder", "cross", "encoder-ff", "decoder-ff"};
  return all;
}

namespace {

// What only a Transformer has.
void refuse_parts(const ExplainOptions& o) {
  const char* given = !o.sublayer.empty() ? "--sublayer"
                      : o.layer           ? "--layer"
                      : o.head            ? "--head"
                      : o.unmasked        ? "--no-mask"
                                          : nullptr;
  if (given)
    throw UsageError(
        fmt::format("{}: this model is recurrent; only a Transformer has parts to choose from "
                    "(--transformer: the small one that comes with lens)",
                    given));
}

}  // namespace

ExplainJson json_for(const ExplainOptions& o) {
  return {
      .digits = o.json ? 17 : 6, .packed = !o.json, .units = o.units, .what_if = !o.json, .paths = o.json};
}

std::string checked(const Subject& subject, size_t checks, double worst, double seconds) {
  return fmt::format(
      "{0} source {2}, {1} target {2}, {3} numbers checked by finite differences, worst relative error "
      "{4:.1e}; {5:.1f} s",
      subject.source.pieces.size(), subject.target.pieces.size(), subject.model.config.tokens(), checks,
      worst, seconds);
}

int explain(const ExplainOptions& o) {
  Stopwatch watch;
  Subject subject = subject_of(o);
  if (subject.model.transformer()) return explain_transformer(o, subject);
  refuse_parts(o);
  Dissection d = subject.dissect();
  SentenceTrace trace = trace_sentence(d, step_of(o, subject), kChecks);
  if (o.text)
    fmt::print("{}", explain_text(subject, d, trace, translator::terminal_style(1)));
  else
    write_trace(o.json, o.out, "explain", to_json(subject, d, trace, json_for(o)),
                checked(subject, trace.checks.size(), trace.worst(), watch.seconds()));
  return verdict("a gradient and finite differences differ", trace.worst());
}

std::string explain_page(const Subject& subject, int64_t step) {
  if (subject.model.transformer()) return transformer::page_of(subject, step);
  const Dissection d = subject.dissect();
  return assemble_page(
      "explain", to_json(subject, d, trace_sentence(d, step), {.digits = 6, .packed = true, .paths = false}));
}

}  // namespace lens
