#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include <common/tell.h>
#include <common/utf8.h>

#include "commands.h"
#include "graph.h"
#include <common/json_text.h>

namespace lens {

int graph(const GraphOptions& o) {
  auto started = std::chrono::steady_clock::now();
  Subject subject = subject_of(o);
  gradus::nn::label_parameters(*subject.model.network);
  Dissection d = subject.dissect();
  if (o.step > static_cast<int>(subject.target.size()))
    throw UsageError(
        fmt::format("--step {}: the target has {} words, </s> included", o.step, subject.target.size()));
  SentenceTrace checked = trace_sentence(d, o.step - 1);
  int64_t step = checked.shown;
  double worst = 0;
  size_t count = 0;
  for (const Compared& c : checked.checks)
    if (c.step == step) {
      ++count;
      worst = gradus::worse(worst, c.error);
    }
  StepGraph g = trace_step(d, static_cast<size_t>(step));
  auto code = [&] {  // as the page's badge
    int differs = verdict("a gradient and finite differences differ", worst);
    return std::max(differs, verdict("a gradient and what the edges bring differ", g.sum_residual, 1e-10));
  };
  if (!o.dot.empty()) write_file(o.dot, graph_dot(subject, g, o.operations));
  if (o.text) {
    fmt::print("{}", translator::utf8::printable_lines(graph_text(subject, g)));
    return code();
  }
  json data = graph_json(subject, g, count, worst, o.json ? 17 : 5);
  if (o.json) {
    write_file(o.out, json_text::dump(data) + "\n");
    return code();
  }
  std::string page = assemble_page("graph", data);
  write_file(o.out, page);
  if (o.out == "-") return code();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  translator::tell("{}: {} operations, {} edges; {:.1f} s, {} KB\n", o.out, g.module_of.size(),
                   g.trace.edges.size(), seconds, page.size() / 1000);
  return code();
}

}  // namespace lens
