// The text and the trace of `lens flow --depth`.

#include <fmt/core.h>

#include <algorithm>

#include "depth.h"
#include "explain/text_parts.h"

namespace lens {
namespace {

constexpr int kNameWidth = 24;

json line_json(const DepthLine& l, const Numbers& number) {
  return {{"median", number(l.median)},
          {"low", number(l.low)},
          {"high", number(l.high)},
          {"last", number(std::vector<double>{l.last, l.last_low, l.last_high})}};
}

// A row a kind, a column of five characters a depth: eight depths fit 80.
template <class What>
std::string table(const DepthStudy& study, const std::string& about, What&& what) {
  std::string out = "\n" + paragraph(about) + fmt::format("\n  {:<{}}", "layers", kNameWidth);
  std::vector<int64_t> depths;
  for (const DepthResult& r : study.results)
    if (std::find(depths.begin(), depths.end(), r.layers) == depths.end()) depths.push_back(r.layers);
  for (int64_t depth : depths) out += fmt::format(" {:>5}", depth);
  for (const DepthKind& kind : depth_kinds()) {
    out += fmt::format("\n  {:<{}}", kind.name(), kNameWidth);
    for (int64_t depth : depths)
      for (const DepthResult& r : study.results)
        if (r.layers == depth && r.kind.name() == kind.name()) out += fmt::format(" {:>5}", what(r));
  }
  return out + "\n";
}

}  // namespace

std::string DepthStudy::title() const {
  return fmt::format("How much gradient reaches each layer: untrained Transformers of {} layers",
                     sizes.layers);
}

std::string DepthStudy::setup() const {
  return fmt::format(
      "{} fresh encoder{} of each kind: {} units, {} heads, {} units in the feed-forward part ({}), matrices "
      "from Xavier's uniform distribution, biases 0, no dropout; {} random words, vectors from N(0, 1), go in, "
      "and an output layer says a random one of {} classes for each, whose losses are added. Seeds are shared: "
      "the kinds have the same weights. A kind is y = norm(x + f(x)), norm last, or y = x + f(norm(x)) and a "
      "norm behind the last layer, norm first, for f attention and feed-forward; without residuals x + is "
      "left out",
      seeds, seeds == 1 ? "" : "s", sizes.width, sizes.heads, sizes.hidden, sizes.activation, sizes.words,
      sizes.vocabulary);
}

FlowChecks DepthStudy::checks() const {
  FlowChecks out;
  for (const DepthResult& r : results) out.add(r.checks);
  return out;
}

std::vector<const DepthResult*> DepthStudy::shown() const {
  std::vector<const DepthResult*> out;
  for (const DepthResult& r : results)
    if (r.layers == sizes.layers) out.push_back(&r);
  return out;
}

std::string depth_text(const DepthStudy& study) {
  const int64_t N = study.sizes.layers;
  std::string out = paragraph(study.title());
  const auto shown = study.shown();
  for (auto [line, what] : {std::pair(&DepthResult::states, "|dL/dx_l|, x_l what layer l reads,"),
                            std::pair(&DepthResult::weights,
                                      "|dL/dW_l|, W_l the second matrix of layer l's feed-forward part,")}) {
    FlowRange range{0, 0};
    for (const DepthResult* r : shown) range.take((r->*line).median);
    out += "\n" + paragraph(fmt::format("{} over that of layer {}: layers 1 to {}, log scale, {} ▁ to {} █, "
                                        "median of {}; behind it log10 of layer 1: median, least and largest",
                                        what, N, N, power(range.low), power(range.high), study.seeds)) +
           "\n";
    for (const DepthResult* r : shown) {
      const DepthLine& l = r->*line;
      out += fmt::format("  {:<{}} {} {} ({} to {})\n", r->kind.name(), kNameWidth, blocks(l.median, range),
                         tenths(l.median[0]), tenths(l.low[0]), tenths(l.high[0]));
    }
  }
  out += table(study, "Layer 1 over the last: log10 |dL/dx_1| / |dL/dx_N|",
               [](const DepthResult& r) { return tenths(r.states.median[0]); });
  out += table(study, "The last layer's own matrix: log10 |dL/dW_N|",
               [](const DepthResult& r) { return tenths(r.weights.last); });
  out += table(
      study,
      "How far the words still differ where the last layer reads them: |x - mean| / |x|, mean over words",
      [](const DepthResult& r) {
        const double x = r.apart.back();  // below is rounding
        return x < 1e-14 ? std::string("0") : x < 0.01 ? fmt::format("{:.0e}", x) : fmt::format("{:.2g}", x);
      });
  const FlowChecks c = study.checks();
  out += "\n" + paragraph(study.setup() + ".");
  out += paragraph(fmt::format(
      "{} lengths compared with finite differences, worst relative error {:.0e}{}.", c.count, c.worst,
      c.small ? fmt::format(" (the loss is too far away for {}: they are compared at their layer's output)",
                            c.small)
              : ""));
  return out;
}

json depth_json(const DepthStudy& study) {
  const Numbers number{4};
  json all = json::array();
  for (const DepthResult& r : study.results)
    all.push_back({{"residual", r.kind.residual},
                   {"norm", r.kind.norm},
                   {"layers", r.layers},
                   {"states", line_json(r.states, number)},
                   {"weights", line_json(r.weights, number)},
                   {"apart", number(r.apart)}});
  const FlowChecks c = study.checks();
  return {{"format", "gradus-lens-trace"},
          {"version", 1},
          {"kind", "depth"},
          {"title", study.title()},
          {"setup", study.setup()},
          {"seeds", study.seeds},
          {"layers", study.sizes.layers},
          {"checks", {{"count", c.count}, {"small", c.small}, {"worst", number(c.worst)}}},
          {"results", all}};
}

}  // namespace lens
