#pragma once

#include <string>

#include <translator/commands/commands.h>

namespace lens {

struct DiffOptions {
  translator::DiffCommand systems;
  std::string out = "diff.html";
};
int diff(DiffOptions& options);

}  // namespace lens
