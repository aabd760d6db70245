#pragma once

#include <string>
#include <vector>

namespace lens {

struct CheckCommandOptions {
  std::vector<std::string> names;  ///< of op cases, or how they begin; none: list them
  bool all = false;
  bool reference = false;  ///< the composed twin of the op
};
int check_command(const CheckCommandOptions& options);

struct CourseOptions {
  std::vector<std::string> what;  ///< nothing, a number, "verify", or "verify" and a number
  std::string folder;             ///< the learner's own
  bool hint = false, solution = false, watch = false, quiet = false;
  int time_limit = 120;  ///< seconds that a learner's program may run
  bool reset = false;  ///< hand out the file anew; the old one is kept beside it
};
int lesson_command(const CourseOptions& options);
int lab_command(const CourseOptions& options);

}  // namespace lens
