#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <translator/insight.h>
#include <common/terminal.h>

namespace translator {

/// What a run shows of itself while it goes on: the validations so far, and the newest translations.
struct LiveView {
  std::vector<double> train_loss, valid_loss, bleu, exact_match;  ///< one a validation; the last in percent
  std::optional<ProbeResult> probe;                               ///< its attention is drawn
  std::vector<std::pair<std::string, std::string>> samples;  ///< source and translation, the probe's first
};

/// A panel of lines no wider than the terminal, and few enough for it: sparklines, the probe's translation over
/// its heat map, the other samples. Where the map does not fit a line says so.
std::string draw_live_view(const LiveView& view, const TerminalStyle& style);

}  // namespace translator
