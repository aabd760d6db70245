#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace translator {

/// The text with a capital at its first letter, tags of a markup language not counted: <b>He</b>.
std::string capitalized(std::string_view text);
/// The first of a text's words behind such tags.
size_t first_behind_tags(const std::vector<std::string>& words);

/// Which words keep their capital at the beginning of a sentence, where every word has one: those that usually
/// have it elsewhere (Lita et al. 2003, "tRuEcasIng", its unigram case).
class Truecaser {
 public:
  /// Counts the words of a sentence; the first one tells only whether sentences begin with a capital.
  void count(const std::vector<std::string>& words);
  /// After counting: what is capitalised more often than not.
  void decide();

  /// Whether more of the counted sentences begin with a capital than with a small letter: where they do not,
  /// there is nothing to fold, and no capital to give back.
  bool begins_with_capital() const { return capitals_ > 0; }

  /// The sentence, normalised, with its first word as it would be spelt inside: in lower case, unless it is
  /// known to keep its capital, or has more than one.
  std::string fold(const std::string& sentence) const;

  /// The words that keep their capital, a line each: the file of a model directory.
  std::string text() const;
  /// @throws InputError naming file and line: an empty line, invalid UTF-8, a control character.
  static Truecaser load(const std::string& path);

 private:
  // Of the capitalised over the others: of the first words, and by the word in lower case.
  int64_t capitals_ = 0;
  std::unordered_map<std::string, int64_t> excess_;
  std::set<std::string, std::less<>> kept_;
};

}  // namespace translator
