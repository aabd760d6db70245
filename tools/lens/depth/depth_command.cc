#include <fmt/core.h>


#include <common/json_text.h>
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
  // Work grows with the square of the depth, and the deepest of a kind stands last.
  run_jobs(
      kinds.size(),
      [&](size_t i, int) {
        const size_t k = (kinds.size() - 1 - i) % 6 * 8 + (kinds.size() - 1 - i) / 6;
        study.results[k] = measure_depth(kinds[k], sizes[k], o.seeds, sizes[k].layers == study.sizes.layers);
      },
      "stacks");
  const bool to_file = !o.text && o.out != "-";
  if (!o.svg.empty()) write_file(o.svg, depth_svg(study));
  if (o.json) write_file(o.out, json_text::dump(depth_json(study)) + "\n");
  if (!o.text && !o.json) write_file(o.out, assemble_page("depth", depth_json(study)));
  if (o.text || to_file) fmt::print("{}", translator::utf8::printable_lines(depth_text(study)));
  if (to_file) translator::tell("{}: {} settings, {:.1f} s\n", o.out, study.results.size(), watch.seconds());
  return verdict("a gradient and finite differences differ", study.checks().worst);
}

}  // namespace lens
