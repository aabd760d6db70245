#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace translator {

/// The parts of a text, each up to the next `end`; the last one need not have one.
template <class Char>
std::vector<std::basic_string_view<Char>> views_of(std::basic_string_view<Char> text, Char end) {
  std::vector<std::basic_string_view<Char>> out;
  while (!text.empty()) {
    const size_t size = std::min(text.find(end), text.size());
    out.push_back(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return out;
}

/// The same, apart from the text.
inline std::vector<std::string> split(std::string_view text, char end) {
  const auto parts = views_of(text, end);
  return {parts.begin(), parts.end()};
}

}  // namespace translator
