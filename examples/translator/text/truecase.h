#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace translator {

/// Which words keep their capital at the beginning of a sentence, where every word has one: those that usually
/// have it elsewhere (Lita et al. 2003, "tRuEcasIng", its unigram case).
class Truecaser {
 public:
  /// Counts the words of a sentence but for its first one, which tells nothing.
  void count(const std::vector<std::string>& words);
  /// After counting: what is capitalised more often than not.
  void decide();

  /// The sentence, normalised, with its first word as it would be spelt inside: in lower case, unless it is
  /// known to keep its capital, or has more than one.
  std::string fold(const std::string& sentence) const;

  /// The words that keep their capital, a line each: the file of a model directory.
  std::string text() const;
  /// @throws InputError naming file and line: an empty line, invalid UTF-8, a control character.
  static Truecaser load(const std::string& path);

 private:
  std::unordered_map<std::string, int64_t>
      excess_;  // of the capitalised over the others, by the word in lower case
  std::set<std::string, std::less<>> kept_;
};

}  // namespace translator
