#pragma once

#include <string>

#include "experiment.h"
#include "log.h"

namespace papers {

/// Runs what the file lacks, as many at a time as there are processors, and shows how far it is. False when it
/// was interrupted (Ctrl-C): then what was running has left nothing.
/// @throws std::runtime_error when a command fails, with what it said.
bool run_missing(const std::string& name, const std::vector<Run>& all, LogFile& file);

}  // namespace papers
