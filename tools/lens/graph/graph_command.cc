#include <fmt/core.h>

#include <algorithm>

#include <common/utf8.h>
#include <translator/model/files.h>

#include "commands.h"
#include "graph.h"
#include "jobs.h"

namespace lens {
namespace {

// The graph, and what was compared of its step with differences.
struct Checked {
  StepGraph graph = {};
  size_t count = 0;
  double worst = 0;

  template <class Compared>
  void add(const std::vector<Compared>& checks, int64_t step) {
    for (const Compared& c : checks)
      if (c.step == step) {
        ++count;
        worst = gradus::worse(worst, c.error);
      }
  }
};

Checked recurrent(const Subject& subject, int64_t step) {
  Checked out;
  const Dissection d = subject.dissect();
  const SentenceTrace trace = trace_sentence(d, step, kChecks);
  out.add(trace.checks, trace.shown);
  out.graph = trace_step(d, static_cast<size_t>(trace.shown));
  return out;
}

Checked of_transformer(const Subject& subject, int64_t step) {
  Checked out;
  const transformer::Dissection d(*subject.model.transformer(), subject.source_ids, subject.target_ids);
  transformer::Trace trace = transformer::differentiate(d);
  if (step >= 0) trace.shown = step;
  trace.spot = transformer::strongest(trace, trace.shown);
  transformer::check(d, trace, kChecks);
  out.add(trace.checks, trace.shown);
  out.graph = trace_step(d, trace, static_cast<size_t>(trace.shown));
  return out;
}

}  // namespace

int graph(const GraphOptions& o) {
  if (!o.dot.empty() && translator::is_same_place(o.dot, o.out))
    throw UsageError("--dot and --out name one file: " + o.out);
  Stopwatch watch;
  Subject subject = subject_of(o);
  gradus::nn::label_parameters(*subject.model.network);
  const int64_t step = step_of(o, subject);
  const auto [g, count, worst] =
      subject.model.transformer() ? of_transformer(subject, step) : recurrent(subject, step);
  if (!o.dot.empty()) write_file(o.dot, graph_dot(subject, g, o.operations));
  if (o.text)
    fmt::print("{}", translator::utf8::printable_lines(graph_text(subject, g)));
  else {
    const auto& edges = g.trace.edges;
    const auto between = std::count_if(edges.begin(), edges.end(), [&in = g.module_of](const auto& e) {
      return in.count(e.from) && in.count(e.to);
    });
    write_trace(o.json, o.out, "graph", graph_json(subject, g, count, worst, o.json ? 17 : 5),
                fmt::format("{} operations, {} edges between them; {:.1f} s", g.module_of.size(), between,
                            watch.seconds()));
  }
  int differs = verdict("a gradient and finite differences differ", worst);  // as the page's badge
  return std::max(differs, verdict("a gradient and what the edges bring differ", g.sum_residual, 1e-10));
}

}  // namespace lens
