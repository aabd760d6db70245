#pragma once

#include <string>
#include <string_view>

#include <translator/doctor/folded.h>

// What is told of a pair by itself. Each function returns what is wrong, for people, or nothing.

namespace translator::doctor {

/// Of one side: a control character, U+FFFD, a private character, UTF-8 that was read as Latin-1.
std::string odd_characters(std::u32string_view text);
/// One to three words that one side says four times running, or more, and the other does not; a side that
/// says all it says twice.
std::string repetition(const Folded& source, const Folded& target);
/// The same words in the same order, or four of five of them where there are four or more.
std::string likeness(const Folded& source, const Folded& target);
/// HTML tags, entities, placeholders (%s, {name}) and addresses that are on one side only.
std::string markup_difference(std::string_view source, std::string_view target);
/// Numbers, when each side has one that the other has not. Overlooked: separators and zeros at the end (1,500
/// and 1.5 million), hours of the afternoon (2:30 and 14 h 30), centuries ('90s and 1990s); words for
/// numbers.
std::string number_difference(std::u32string_view source, std::u32string_view target);

}  // namespace translator::doctor
