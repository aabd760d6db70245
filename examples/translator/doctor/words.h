#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <translator/text/parallel.h>

namespace translator::doctor {

/// The words of one side of many pairs as numbers. A word is here the first five characters of one: forms of
/// a word then count together, which few pairs need most (hunalign and others do the same).
struct Words {
  /// characters
  static constexpr size_t kLength = 5;
  /// words of a sentence that are looked at
  static constexpr size_t kLongest = 60;

  std::vector<int32_t> ids;
  /// of each sentence in `ids`, and the end
  std::vector<size_t> begin = {0};
  /// by number
  std::vector<std::string> types;
  /// of each type
  std::vector<int64_t> counts;

  size_t sentences() const { return begin.size() - 1; }
  std::span<const int32_t> of(size_t i) const { return {ids.data() + begin[i], begin[i + 1] - begin[i]}; }
};

/// @param words Of one side: &SentencePair::source, in lower case.
Words words_of(const std::vector<SentencePair>& pairs, std::vector<std::string> SentencePair::*words);

}  // namespace translator::doctor
