#include <fmt/core.h>

#include <atomic>

#include <common/json_text.h>
#include <common/progress.h>
#include <common/tell.h>
#include <common/utf8.h>

#include "depth.h"
#include "jobs.h"

namespace lens {

int flow_depth(const FlowOptions& o) {
  Stopwatch watch;
  if (!o.model.empty())
    throw UsageError(
        "--depth compares fresh stacks of 2 to 24 layers: it goes without a model, whose depth is "
        "what it is");
  DepthStudy study;
  study.seeds = o.seeds;
  std::vector<DepthSizes> sizes;
  std::vector<DepthKind> kinds;
  for (const DepthKind& kind : depth_kinds())
    for (int64_t layers : {2, 4, 6, 8, 12, 16, 20, 24}) {
      kinds.push_back(kind);
      sizes.push_back(study.sizes);
      sizes.back().layers = layers;
    }
  study.results.resize(kinds.size());
  {
    // Work grows with the square of the depth, and the deepest of a kind stands last.
    translator::Progress bar("stacks", static_cast<int64_t>(kinds.size()), {.delay_seconds = 2});
    std::atomic<int64_t> done{0};
    run_jobs(kinds.size(), [&](size_t i, int worker) {
      const size_t k = (kinds.size() - 1 - i) % 6 * 8 + (kinds.size() - 1 - i) / 6;
      study.results[k] = measure_depth(kinds[k], sizes[k], o.seeds, sizes[k].layers == study.sizes.layers);
      const int64_t now = ++done;
      if (worker == 0) bar.update(now);
    });
  }
  const bool to_file = !o.text && o.out != "-";
  if (!o.svg.empty()) write_file(o.svg, depth_svg(study));
  if (o.json) write_file(o.out, json_text::dump(depth_json(study)) + "\n");
  if (!o.text && !o.json) write_file(o.out, assemble_page("depth", depth_json(study)));
  if (o.text || to_file) fmt::print("{}", translator::utf8::printable_lines(depth_text(study)));
  if (to_file) translator::tell("{}: {} settings, {:.1f} s\n", o.out, study.results.size(), watch.seconds());
  return verdict("a gradient and finite differences differ", study.checks().worst);
}

}  // namespace lens
