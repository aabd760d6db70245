#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace translator {

struct TokenizerOptions {
  bool lowercase = true;  ///< fold the case of every letter
};

/// One line of text in the one spelling the translator works with:
/// - NFC; ill-formed bytes become U+FFFD (readers of files refuse them before);
/// - every Unicode space and line separator becomes a plain space, runs of them one, none at either end;
/// - typographic apostrophes become ', typographic double quotes ", the Unicode hyphens and the minus sign -;
/// - controls and invisible format characters (U+FEFF, U+200B, U+00AD ...) are dropped, but for the joiners
///   U+200C and U+200D, which change how Devanagari and emoji are read.
/// Doing it twice changes nothing.
std::string normalize(std::string_view line, const TokenizerOptions& options = {});

/// Words and punctuation of one line, after normalize().
///
/// - A word is a run of letters, digits and combining marks; hyphens inside it stay (`est-ce`), and so do
///   `.` `,` `:` between two digits (`3.14`, `1,000`, `10:30`) and the stops of initials (`p.m.`).
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
