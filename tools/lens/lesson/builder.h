#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lens {

/// Where the folders lessons/ and labs/ are: beside the program where it is installed, else in the source tree.
std::filesystem::path course_folder();

/// Compiles and links one file with the compiler that built lens, unoptimised. The compiler's messages go to
/// stderr. False when it has errors.
bool build_program(const std::filesystem::path& source, const std::filesystem::path& program, bool coloured);

/// Runs a program; its output goes to stdout, or is added to *output. Returns its exit status, 128 + n after
/// signal n.
int run_program(const std::vector<std::string>& command, std::string* output = nullptr);

}  // namespace lens
