#pragma once

#include <string>

#include "../cli/program.h"

namespace cli {

/// A program of the gallery, by its name there: "captions".
inline Result run_gallery(const std::string& name, const Arguments& options) {
  Arguments words = {std::string(GALLERY) + "/gallery-" + name};
  words.insert(words.end(), options.begin(), options.end());
  return run_program(words);
}

}  // namespace cli
