#pragma once

#include <istream>
#include <string>

namespace lens {

/// Reads a log's next line; false at its end. Errors call the log `path`, and the line by its number.
/// @throws translator::InputError for a line of more than 64 MB: whatever that is, it is no log.
bool next_line(std::istream& log, const std::string& path, int64_t number, std::string& line);

}  // namespace lens
