#include <fmt/core.h>

#include <algorithm>

#include <common/utf8.h>

#include "commands.h"
#include "graph.h"
#include "jobs.h"
#include <common/json_text.h>

namespace lens {

int graph(const GraphOptions& o) {
  Stopwatch watch;
  Subject subject = subject_of(o);
  gradus::nn::label_parameters(*subject.model.network);
  Dissection d = subject.dissect();
  SentenceTrace checked = trace_sentence(d, step_of(o, subject));
  int64_t step = checked.shown;
  double worst = 0;
  size_t count = 0;
  for (const Compared& c : checked.checks)
    if (c.step == step) {
      ++count;
      worst = gradus::worse(worst, c.error);
    }
  StepGraph g = trace_step(d, static_cast<size_t>(step));
  if (!o.dot.empty()) write_file(o.dot, graph_dot(subject, g, o.operations));
  if (o.text)
    fmt::print("{}", translator::utf8::printable_lines(graph_text(subject, g)));
  else if (json data = graph_json(subject, g, count, worst, o.json ? 17 : 5); o.json)
    write_file(o.out, json_text::dump(data) + "\n");
  else
    write_page(o.out, "graph", data,
               fmt::format("{} operations, {} edges; {:.1f} s", g.module_of.size(), g.trace.edges.size(),
                           watch.seconds()));
  int differs = verdict("a gradient and finite differences differ", worst);  // as the page's badge
  return std::max(differs, verdict("a gradient and what the edges bring differ", g.sum_residual, 1e-10));
}

}  // namespace lens
