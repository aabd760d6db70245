#pragma once

#include <functional>
#include <string>

#include "output.h"

namespace lens {

/// What checks logged (LENS_CHECK_LOG, see check_log.h) as the trace that docs/trace-schema.md describes, of kind "check".
/// @throws gradus::Error for a file that is not there, is empty, or holds something else.
json read_check_log(const std::string& path);

/// Runs a command and writes a page of all checks that it, and programs that it starts, make. Without a file to write it
/// only runs the command. Returns the command's result.
int with_check_page(const std::string& out, const std::function<int()>& command);

/// The page of a log; 1 when a check in it failed.
int check_page(const std::string& log, const std::string& out);

}  // namespace lens
