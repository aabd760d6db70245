#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "../scratch.h"
#include "lesson/course.h"
#include "run.h"

inline const std::string kLens = LENS;

// A scratch folder in which lens runs.
struct Scratch {
  scratch::Directory directory{std::filesystem::temp_directory_path()};  // programs run there
  const std::filesystem::path& path = directory.path();
  Ran lens(const std::string& arguments) const {
    return run("cd " + path.string() + " && " + kLens + " " + arguments);
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path / name) << text; }
  std::string read(const std::string& name) const { return lens::read_text(path / name); }
};
