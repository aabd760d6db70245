#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace translator {

/// Whose habits of spacing the text follows.
enum class Typography {
  /// no space before any closing punctuation
  other,
  /// a space before ? ! : ; % and inside « »
  french,
};

/// The tokens as a person would write them: elided particles joined to their word (`n' aime` -> `n'aime`), no
/// space before stops, commas, closing brackets and the danda, none between characters of a script without
/// spaces, quotes told apart as opening and closing. It undoes tokenize() but for what that leaves undecided
/// (`a/b` and `a / b` come out alike), unless marks say it.
std::string detokenize(const std::vector<std::string>& tokens, Typography typography = Typography::other);

/// The tokens with a mark in front of each before which detokenize() would not write what the text has: U+FFED
/// where there is no space, U+2581 where there is one. `spaced[i]` says whether one stands before token i. With
/// them every text comes back as it was, and a model can learn where writers leave the rules.
std::vector<std::string> mark_spaces(const std::vector<std::string>& tokens, const std::vector<bool>& spaced,
                                     Typography typography = Typography::other);

/// The token without its mark, if it has one.
std::string_view without_mark(std::string_view token);

}  // namespace translator
