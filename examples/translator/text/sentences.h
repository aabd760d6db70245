#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace translator {

/// A sentence of a paragraph, and the white space behind it.
struct SentenceOfText {
  std::string text, space;
};

/// The sentences of a line, which joined with their spaces are the line again, byte for byte.
///
/// A sentence ends behind `.` `!` `?` `…` or a run of them, the danda of Devanagari, the question marks and
/// stops of Arabic, Ethiopic, Burmese and Khmer, and the closing quotes and brackets that follow, where white
/// space comes next; behind the full-width stops of Chinese and Japanese whatever comes next. Thai, which marks
/// no ends, stays whole. `.` and `…` end none
///   - when a small letter comes next, or a digit behind an abbreviation of numbers (No. 5);
///   - behind an initial (J. S. Bach), behind a word with stops inside (e.g., U.S., p.m.), unless what comes
///     next is a capital and the word is not one that names follow;
///   - behind one of some sixty abbreviations of titles, months and references of English, French, German and
///     Spanish (Mr. Dr. Mme. bzw. Sra.).
std::vector<SentenceOfText> sentences_of(std::string_view line);

/// How many characters the tag of a markup language has that the text begins with: <p>, </div>; 0: none.
size_t tag_length(std::u32string_view text);

/// A line that is not text for people: blank, or a tag of a markup language by itself: <p>, </div>.
bool is_markup_line(std::string_view line);

}  // namespace translator
