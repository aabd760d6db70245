#pragma once

#include <optional>
#include <string>

#include "commands.h"
#include "explain/explain.h"
#include "trace.h"

namespace lens::transformer {

/// What is written: a trace with the sentence that it is of.
struct Explained {
  const Subject& subject;
  const Dissection& d;
  const Trace& trace;
};

/// The part, layer and head that were asked for; of what was left open, where the loss's gradient is largest.
/// @throws UsageError for what this model does not have.
Spot spot_of(const ExplainOptions& options, const Trace& trace, int64_t step);
/// "cross-attention, layer 2, head 3"
std::string name_of(const Sublayer& part, int64_t head = -1);

/// The trace of kind "explain-transformer", see docs/trace-schema.md.
json to_json(const Explained& x, const ExplainJson& options);
/// The page of it: of the step shown first, from 0; -1: the one with the largest loss.
std::string page_of(const Subject& subject, int64_t step);
/// Its part "what_if": the network, for a page to compute with, and what the engine makes of some changes.
json what_if_json(const Explained& x);
/// What a terminal gets: all heads at a glance, and one of them with its stations, ways and norm.
std::string text_of(const Explained& x, const translator::TerminalStyle& style);

/// Where a step's loss looks, by source word, each adding up to 1: what is drawn in place of gradients, and the
/// gradient itself.
struct Shares {
  /// Attention rollout (Abnar & Zuidema 2020): the weights' mean over heads, half and half with the residual,
  /// multiplied through all layers.
  std::vector<double> rollout;
  /// Weights times what their gradient lowers the loss by, of all heads and layers of cross-attention.
  std::vector<double> weighted;
  /// |dL_t/dx_j|, x the word as it comes into the encoder.
  std::vector<double> gradient;
};
Shares shares_of(const Trace& trace, int64_t step);

}  // namespace lens::transformer
