#include <fmt/core.h>

#include <algorithm>

#include <common/terminal.h>

#include "jobs.h"
#include "output.h"

namespace lens {
namespace transformer {

std::string name_of(const Sublayer& part, int64_t head) {
  if (part.part == Part::output) return title_of(part.part);
  std::string name = fmt::format("{}, layer {}", title_of(part.part), part.layer + 1);
  return head < 0 ? name : name + fmt::format(", head {}", head + 1);
}

translator::Segmented inputs_of(const translator::Segmented& target) {
  translator::Segmented out = target;
  for (std::vector<std::string>* names : {&out.words, &out.pieces}) {
    names->pop_back();  // </s>
    names->insert(names->begin(), "<s>");
  }
  out.word_of.insert(out.word_of.begin(), -1);
  out.word_of.pop_back();
  for (int32_t& word : out.word_of) ++word;
  return out;
}

Spot spot_of(const ExplainOptions& o, const Trace& trace, int64_t step) {
  const Part parts[] = {Part::encoder_self, Part::decoder_self, Part::cross, Part::encoder_ff,
                        Part::decoder_ff};
  Wanted wanted{.layer = o.layer - 1, .head = o.head - 1};
  const auto& names = explain_sublayers();
  if (auto at = std::find(names.begin(), names.end(), o.sublayer); at != names.end())
    wanted.part = parts[at - names.begin()];
  int64_t layers = 0, heads = 0;
  for (const Sublayer& s : trace.run.parts) {
    layers = std::max(layers, s.layer + 1);
    if (attends(s.part)) heads = s[kScores].size(1);
  }
  if (o.layer > layers)
    throw UsageError(
        fmt::format("--layer {}: encoder and decoder of this model have {} each", o.layer, layers));
  if (o.head > heads)
    throw UsageError(fmt::format("--head {}: each attention of this model has {}", o.head, heads));
  if (o.head && wanted.part && !attends(*wanted.part))
    throw UsageError(fmt::format("--head {}: {} has no heads; leave --head out", o.head, o.sublayer));
  return strongest(trace, step, wanted);
}

std::string page_of(const Subject& subject, int64_t step) {
  const Dissection d(*subject.model.transformer(), subject.source_ids, subject.target_ids);
  Trace trace = differentiate(d);
  if (step >= 0) trace.shown = step;
  trace.spot = strongest(trace, trace.shown, {});
  check(d, trace);
  return assemble_page("transformer",
                       to_json({subject, d, trace}, {.digits = 6, .packed = true, .paths = false}));
}

}  // namespace transformer

int explain_transformer(const ExplainOptions& o, const Subject& subject) {
  Stopwatch watch;
  namespace tf = transformer;
  tf::Dissection d(*subject.model.transformer(), subject.source_ids, subject.target_ids, !o.unmasked);
  tf::Trace trace = tf::differentiate(d);
  if (const int64_t step = step_of(o, subject); step >= 0) trace.shown = step;
  trace.spot = tf::spot_of(o, trace, trace.shown);
  tf::check(d, trace, kChecks);
  const tf::Explained x{subject, d, trace};
  if (o.text)
    fmt::print("{}", tf::text_of(x, translator::terminal_style(1)));
  else
    write_trace(o.json, o.out, "transformer", tf::to_json(x, json_for(o)),
                checked(subject, trace.checks.size(), trace.worst(), watch.seconds()));
  return verdict("a gradient and finite differences differ", trace.worst());
}

}  // namespace lens
