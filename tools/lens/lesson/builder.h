#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lens {

/// Where the folders lessons/ and labs/ are: beside the program where it is installed, else in the source tree.
std::filesystem::path course_folder();

/// Compiles and links one file with the compiler that built lens, unoptimised or a little `optimised`. The
/// compiler's warnings go to stderr, or the first error in the file (compile_error.h), or in the learner's that
/// it includes. False when it has errors.
bool build_program(const std::filesystem::path& source, const std::filesystem::path& program, bool coloured,
                   const std::filesystem::path& learners = {}, bool optimised = false);

/// How a program came to its end.
struct Ended {
  /// exit status, 128 + n after signal n
  int code = 0;
  /// it was ended: beyond its time, or its memory
  bool late = false, greedy = false;
};

/// Runs a program; its output goes to stdout, or (10 MB of it) is added to *output; with `stream` 2 that is
/// what it writes to stderr. With `seconds` it is ended after so many, and when it has taken more than 4 GB, or
/// half of what the machine has where that is less.
Ended run_program(const std::vector<std::string>& command, std::string* output = nullptr, int seconds = 0,
                  int stream = 1);

/// A learner's file, and what decides: an expression for the exit status, `learners_main` being the file's
/// main().
struct Trial {
  std::filesystem::path source;
  /// more code behind the file, and the expression
  std::string before = {}, then = "learners_main()";
  /// a check must be made, and none may fail
  bool must_check = true;
  int seconds = 120;
  bool coloured = false;
  /// it takes longer to compile, and less to run
  bool optimised = false;
};
struct Judged {
  bool passed = false;
  /// where it did not pass, and nothing that was printed says so: one sentence
  std::string why;
};
/// Builds and runs it. It passes when the expression was 0 and the program has told us so in the end
/// (verdict.h): what it prints and exits with cannot pass it. @throws std::runtime_error without a compiler.
Judged judge(const Trial& trial, std::string* output = nullptr);

/// One sentence on a program that was ended, or ended itself by a signal; empty for others.
std::string why_ended(const Ended& ended, int seconds);

}  // namespace lens
