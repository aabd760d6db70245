#pragma once

#include <istream>
#include <string>

#include "page/output.h"

namespace lens {

/// What checks logged (LENS_CHECK_LOG, see check_log.h) as a trace of kind "check" (docs/trace-schema.md).
/// @throws gradus::Error for a file that is missing or empty, translator::InputError for one of something else.
json read_check_log(const std::string& path);
/// The same of a stream, which the errors call `path`.
json read_check_log(std::istream& log, const std::string& path);

}  // namespace lens
