#pragma once

#include <string_view>

#include "output.h"

namespace fuzzing {

/// How often a page begins a script element, or a comment in which one could hide.
inline size_t scripts_in(std::string_view page) {
  size_t count = 0;
  for (std::string_view what : {"<script", "<!--", "</script"})
    for (size_t at = page.find(what); at != page.npos; at = page.find(what, at + 1)) ++count;
  return count;
}

}  // namespace fuzzing
