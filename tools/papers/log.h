#pragma once

#include <string>
#include <vector>

#include "experiment.h"

namespace papers {

/// Commands as they are typed.
Words typed(const std::vector<Words>& commands);

/// The finished runs of an experiment, in one file of JSON lines: of each a line {"event":"run"}, what its
/// commands printed, and a line {"event":"end"}.
class LogFile {
 public:
  /// Reads what is there. @throws translator::InputError naming the line that belongs to no run.
  explicit LogFile(const std::string& path);

  const std::vector<Log>& logs() const { return logs_; }
  const std::string& path() const { return path_; }
  bool has(const Run& run) const;
  /// What add would leave out.
  size_t others(const std::vector<Run>& all) const;
  /// Adds the log of a run. What is no run of `all` is left out, the others stand in its order. The file is
  /// replaced as a whole.
  void add(Log log, const std::vector<Run>& all);

 private:
  std::string path_;
  std::vector<Log> logs_;
};

}  // namespace papers
