#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Unicode as the translator needs it: a thin layer over utf8proc.
namespace translator::utf8 {

/// Offset of the first byte of the first ill-formed sequence (overlong forms, surrogates, values above
/// U+10FFFF and cut-off sequences included), or nothing when the whole text is UTF-8.
std::optional<size_t> first_invalid_byte(std::string_view text);

/// `byte 3 (0xff) is not valid UTF-8`, counting bytes from 1 and those `before` the text as well; empty when
/// the text is valid.
std::string describe_invalid_byte(std::string_view text, size_t before = 0);

/// Code points. Throws std::invalid_argument with describe_invalid_byte's text.
std::u32string decode(std::string_view text);

/// Code points, every ill-formed byte read as U+FFFD: never throws, for text that only gets shown.
std::u32string decode_lossy(std::string_view text);

/// UTF-8 of code points; what is no scalar value is written as U+FFFD.
std::string encode(std::u32string_view text);
void append(std::string& out, char32_t c);

/// Canonical composition (NFC). Ill-formed bytes become U+FFFD.
std::string nfc(std::string_view text);

/// The text with its first letter in upper case, whatever quotes or brackets stand before it.
std::string capitalize(std::string_view text);

/// Terminal columns the text takes: 0 for nonspacing marks and controls, 2 for wide characters. Spacing marks
/// (Mc: most vowel signs of Devanagari) count 1 as in xterm, VTE and glibc; some terminals put them into the
/// letter's column, and no table can be right for both (see width_is_certain).
int display_width(std::string_view text);

/// False where terminals disagree on the width: marks, joiners, emoji.
bool width_is_certain(std::string_view text);

/// The text as grapheme clusters (a letter with its marks), each valid UTF-8.
std::vector<std::string> graphemes(std::string_view text);

/// The width of the widest; 0 of nothing.
int widest(const std::vector<std::string>& texts);

/// The text with spaces before it, or behind it, until it takes so many columns; a wider one stays.
std::string pad_left(std::string_view text, int width);
std::string pad_right(std::string_view text, int width);

/// The text cut to at most `width` columns, the last of which is then an ellipsis.
std::string fit(std::string_view text, int width);

/// True for what acts on a terminal instead of being shown by it: control characters, line separators, and the
/// bidirectional controls, which would reorder the rest of a line.
bool is_unprintable(char32_t c);

/// The text with what is_unprintable, and ill-formed bytes, replaced by U+FFFD, so that it can neither move the
/// cursor nor colour the terminal. All text that a program did not write itself (words, names of files and
/// models, what a file or an argument says) goes through here before a terminal gets it.
std::string printable(std::string_view text);
/// The same for text of several lines: line feeds stay.
std::string printable_lines(std::string_view text);
/// printable, as text or attribute of XML and HTML: & < > " stand as &amp; &lt; &gt; &quot;.
std::string markup(std::string_view text);

// Classes of code points, by Unicode general category.
bool is_space(char32_t c);    ///< Zs, Zl, Zp and the ASCII and Latin-1 white space controls
bool is_letter(char32_t c);   ///< L*
bool is_mark(char32_t c);     ///< M*: among them the vowel signs and the virama of Devanagari
bool is_digit(char32_t c);    ///< Nd
bool is_number(char32_t c);   ///< N*
bool is_control(char32_t c);  ///< Cc
bool is_format(char32_t c);   ///< Cf: among them U+00AD, U+200B to U+200F, U+FEFF
/// Simple case mapping, one code point to one, no locale.
char32_t to_lower(char32_t c);
char32_t to_upper(char32_t c);

/// A paragraph wrapped to the width, each line after `indent` spaces; words that are too long stay whole.
std::string wrapped(const std::string& text, int width, int indent = 0);

}  // namespace translator::utf8
