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
  static constexpr size_t kLength = 5;    ///< characters
  static constexpr size_t kLongest = 60;  ///< words of a sentence that are looked at

  std::vector<int32_t> ids;
  std::vector<size_t> begin = {0};  ///< of each sentence in `ids`, and the end
  std::vector<std::string> types;   ///< by number
  std::vector<int64_t> counts;      ///< of each type

  size_t sentences() const { return begin.size() - 1; }
  std::span<const int32_t> of(size_t i) const { return {ids.data() + begin[i], begin[i + 1] - begin[i]}; }
};

/// @param words Of one side: &SentencePair::source, in lower case.
Words words_of(const std::vector<SentencePair>& pairs, std::vector<std::string> SentencePair::*words);

}  // namespace translator::doctor
