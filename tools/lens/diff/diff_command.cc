#include <fmt/core.h>

#include <translator/commands/diff.h>

#include "diff/diff.h"
#include "page/output.h"

namespace lens {

int diff(DiffOptions& o) {
  translator::apply(o.systems.common);
  const translator::Diff found = translator::diff(o.systems);
  const size_t sentences = found.pairs.size();
  json data = to_json(found);
  data["left_out"] = found.bad;
  write_page(o.out, "diff", data, fmt::format("{} sentence{}", sentences, sentences == 1 ? "" : "s"));
  return found.bad > 0 ? 1 : 0;
}

}  // namespace lens
