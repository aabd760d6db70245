#pragma once

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

/// What the decoder reads, as words and pieces: <s>, and the target but for its last.
translator::Segmented inputs_of(const translator::Segmented& target);

/// The trace of kind "explain-transformer", see docs/trace-schema.md.
json to_json(const Explained& x, const ExplainJson& options);
/// The page of it: of the step shown first, from 0; -1: the one with the largest loss.
std::string page_of(const Subject& subject, int64_t step);
/// Its part "what_if": the network, for a page to compute with, and what the engine makes of some changes.
json what_if_json(const Explained& x);
/// What a terminal gets: all heads at a glance, and one of them with its stations, ways and norm.
std::string text_of(const Explained& x, const translator::TerminalStyle& style);

}  // namespace lens::transformer
