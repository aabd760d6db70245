#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace lens {

/// A folder of one's own for what is compiled, run or believed: its name cannot be foreseen, nobody else may
/// enter it, and it goes with all its files in the end, be that Ctrl-C, a kill or a closed terminal.
class Scratch {
 public:
  /// @throws gradus::Error when the system has none to give.
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Where a file of this name shall be. Names are for all of a program's life: there is room for 16.
  std::filesystem::path file(const std::string& name);

 private:
  std::filesystem::path path_;
};

/// A program that was started: what ends this one ends it, too, while a Scratch is there. 0: none any more.
void ends_with_us(pid_t child);
/// Ends that program now. Signal handlers may call it.
void end_child();

}  // namespace lens
