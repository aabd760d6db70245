#pragma once

#include <string>
#include <vector>

namespace translator {

/// Whose habits of spacing the text follows.
enum class Typography {
  other,    ///< no space before any closing punctuation
  french,   ///< a space before ? ! : ; % and inside « »
  english,  ///< as other; with `capitalize`, the pronoun I as well
};

struct DetokenizerOptions {
  Typography typography = Typography::other;
  bool capitalize = false;  ///< a capital at the beginning of each sentence
};

/// The tokens as a person would write them: elided particles joined to their word (`n' aime` -> `n'aime`), no
/// space before stops, commas, closing brackets and the danda, quotes told apart as opening and closing.
/// It undoes tokenize() but for what that leaves undecided (`a/b` and `a / b` come out alike).
std::string detokenize(const std::vector<std::string>& tokens, const DetokenizerOptions& options = {});

}  // namespace translator
