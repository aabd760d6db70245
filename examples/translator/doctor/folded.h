#pragma once

#include <common/fnv1a.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace translator::doctor {

/// What of a text stays when case, marks and spacing are left out: its words in lower case, with one space
/// between them, and its question marks, which are meaning.
struct Folded {
  std::u32string text = {};
  /// of the text as it stands; letters have a case or none
  int32_t letters = 0, small = 0, capitals = 0;
  bool begins_small = false, begins_capital = false;

  /// all in capitals
  bool shouts() const { return small == 0 && capitals > 5 && words() > 1; }

  /// The number of words.
  size_t words() const;
  uint64_t hash() const;
};
Folded fold(std::u32string_view text);

/// Its words in their order, views of its text.
std::vector<std::u32string_view> words_in(const Folded& folded);

/// FNV-1a, mixed once more.
uint64_t hash_of(std::u32string_view text, uint64_t seed = Fnv1a().hash);

}  // namespace translator::doctor
