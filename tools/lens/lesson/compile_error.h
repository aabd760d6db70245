#pragma once

#include <string>

namespace lens {

/// Of what g++ or clang++ said of a program that includes `file`: the first error in that file, with the lines
/// that show it, how many more there are, and one line on the usual cause where it is a usual one. Colours
/// stay. Empty when none of the errors is in that file: then all must be shown, unless it is that the file has
/// no main() any more, which is said.
std::string first_error(const std::string& messages, const std::string& file);

}  // namespace lens
