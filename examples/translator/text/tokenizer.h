#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace translator {

struct TokenizerOptions {
  /// fold the case of every letter
  bool lowercase = true;
  /// one spelling of what is typed in many ways, so that words are fewer
  bool plain = true;
};

/// One line of text as the translator reads it:
/// - NFC; ill-formed bytes become U+FFFD (readers of files refuse them before);
/// - every Unicode space and line separator becomes a plain space, runs of them one, none at either end;
/// - with `plain` typographic apostrophes become ', typographic double quotes ", the Unicode hyphens and the
///   minus sign -; controls and invisible format characters (U+FEFF, U+200B, U+00AD ...) are dropped, but for
///   the joiners U+200C and U+200D, which change how Devanagari and emoji are read;
/// - without it only what would act on a terminal, and U+FEFF, are dropped, and U+2581, which stands for a
///   space in SentencePiece's pieces, becomes _.
/// Doing it twice changes nothing.
std::string normalize(std::string_view line, const TokenizerOptions& options = {});

/// What normalize() makes of texts besides spaces and case, for people.
class ChangedCharacters {
 public:
  void add(std::string_view line, const TokenizerOptions& options);
  /// `818 characters are read otherwise than written: U+2019 ’ as ' (815), U+200B dropped (3)`; empty: none.
  std::string summary() const;

 private:
  // what, and what it is read as; 0: nothing
  std::map<std::pair<char32_t, char32_t>, int64_t> counts_;
  // no-break, thin, ... read as plain ones
  int64_t spaces_ = 0;
  // lines that NFC changes
  int64_t composed_ = 0;
};

/// Of a script that is written without spaces between words: Han, kana, Thai, Lao, Khmer, Burmese.
bool is_unspaced(char32_t c);

/// What becomes of a run of such characters: words nobody can see the ends of.
enum class Unspaced {
  /// each, with its marks, is a word
  single,
  /// the run is one
  whole,
};

/// From which character to before which.
using WordRange = std::pair<size_t, size_t>;

/// Where the words of a normalised text are, in code points; what lies between them are spaces and stray
/// joiners. Typographic variants count as their plain spelling, whether the text has it or not.
std::vector<WordRange> word_ranges(std::u32string_view text, Unspaced unspaced = Unspaced::single);

/// Words and punctuation of one line, after normalize().
///
/// - A character of a script without spaces is a word by itself, with its marks.
/// - Any other word is a run of letters, digits and combining marks; hyphens inside it stay (`est-ce`), and so
///   do `.` `,` `:` between two digits (`3.14`, `1,000`, `10:30`) and the stops of initials (`p.m.`).
/// - Every other character is a token by itself, but a run of `.` or of `-` is one token.
/// - Apostrophes, with one rule for all languages. What stands before the apostrophe (after the last hyphen)
/// is
///   the stem, the letters behind it the suffix:
///     1. stem one of c ç d j l m n s t, or ending in qu: a French elision, cut behind the apostrophe
///        (`l' homme`, `jusqu' à`, `qu' est-ce`, also `l' s`, `d' m`); only `n't` stays whole;
///     2. suffix s, d, ll, re, ve, or t after n, or m after i: an English contraction, whole (`doesn't`,
///     `i'm`);
///     3. aujourd'hui, prud'homme, ma'am, y'all ..., names and words in o' (`o'clock`): whole;
///     4. a stem that is not in Latin letters: whole (`п'ять`);
///     5. anything else is cut behind the apostrophe (Italian `dell' arte`).
///   An apostrophe that ends a word stays with it (`boys'`, `l'` in text that was tokenised before) unless it
///   closes a quotation; one that begins a word, or stands alone, is a token.
///
/// Tokenising what join_tokens made of the result gives the same tokens, so that text which is tokenised
/// already may go through as it is.
std::vector<std::string> tokenize(std::string_view line, const TokenizerOptions& options = {});

/// Tokens of a line that is tokenised already: cut at plain spaces and nothing else.
std::vector<std::string> split_tokens(std::string_view line);

/// The tokens with one space between them.
std::string join_tokens(const std::vector<std::string>& tokens);

/// True for a token that must be written together with the next one: `l'`, `qu'`, `dell'`; not for `boys'`,
/// `goin'`.
bool is_elision(std::string_view token);

}  // namespace translator
