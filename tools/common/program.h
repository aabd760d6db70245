#pragma once

#include <string>

namespace lens {

/// How a user calls this program, for advice that can be pasted: "build/tools/lens/lens lesson 6". "lens" where
/// it was found in PATH, and in tests, which call functions.
const std::string& program();
/// For main: argv[0], in quotes where a shell would need them.
void called_as(const char* argv0);

/// A word of a command line, in single quotes: for /bin/sh it is one word, whatever is in it.
std::string shell_quoted(const std::string& word);

}  // namespace lens
