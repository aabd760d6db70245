#pragma once

#include <string>
#include <vector>

#include <translator/training/trainer.h>
#include <common/terminal.h>

namespace translator {

/// What a run shows of itself while it goes on, of the validations so far (one at least) and of what the
/// newest one looked at: a panel of lines no wider than the terminal, and few enough for it. Sparklines, the
/// probe's translation over its heat map, the other samples. Where the map does not fit a line says so.
std::string draw_live_view(const std::vector<Validation>& validations, const RunLog::Details& newest,
                           const TerminalStyle& style);

/// What a trainer of real text is told in the first minute, when scores are still low: how long it takes here.
/// From the seconds that so many epochs took, for as many as `passes`, and target tokens a second; `hint` ends
/// it, a sentence or nothing. Empty below two minutes.
std::string time_needed(double seconds, double epochs, double passes, double tokens_per_second,
                        const std::string& hint, int width);

}  // namespace translator
