#pragma once

#include <string>

namespace translator {

/// How a user calls this program, for advice that can be pasted: "build/tools/lens/lens".
const std::string& program();
/// For main: its argv[0].
void called_as(const std::string& argv0);

/// A word of a command line: as it stands, or in single quotes where /bin/sh would take it for something else.
std::string shell_word(const std::string& word);

}  // namespace translator
