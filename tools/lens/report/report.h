#pragma once

#include <istream>
#include <string>

#include <common/terminal.h>

#include "page/output.h"

namespace lens {

/// A training run as its directory tells it, whichever version logged it: what `lens report` draws.
///   {"format": "gradus-lens-report", "version": 1, "name", "facts": [[name, value]], "pieces", "attends",
///    "validated" (on any sentences), "state", "notes": [text], "resumes": [{"epoch", "step"}],
///    "layers": [{"name", "shape"}] or null,
///    "validations": [as in docs/run-log.md], "left_out": n,
///    "explained": [{"source", "reference", "page" or null, "command"}]}
/// Fields of a validation that were not logged are missing. Nothing that is there is changed, but for "samples"
/// where there is a probe.
/// @throws translator::InputError when there is no train.log, or a field in it or in config.json is not what it
/// must be: file, line and field are named. Lines that are no JSON (a run was killed while it wrote one) are
/// counted in a note.
json read_run(const std::string& directory);
/// The same of streams, as if they were that directory's; `config` is nullptr where there is none.
json read_run(const std::string& directory, std::istream& log, std::istream* config);

/// The command that explains a sentence of a run's model, for a shell.
std::string explain_command(const std::string& directory, const std::string& source,
                            const std::string& reference, const std::string& out);

/// The worst sentences of the last validation that logged any; [] without.
json last_worst(const json& run);

/// The run for a terminal.
std::string report_text(const json& run, const translator::TerminalStyle& style);

}  // namespace lens
