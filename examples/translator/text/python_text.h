#pragma once

#include <string>
#include <string_view>
#include <vector>

// Text as Python's str has it, which is what sacreBLEU's scores are made with. Ill-formed bytes are read as
// U+FFFD.

namespace translator::python_text {

/// White space as str.isspace() sees it in words.
bool is_space(char32_t c);

/// Whether it is in string.punctuation: ASCII's.
bool is_punctuation(char c);

/// str.split(): what stands between white space.
std::vector<std::string> split(std::string_view text);

/// str.rstrip().
std::string trim_end(std::string_view text);

/// str.lower(): a sigma at the end of a word is another letter there, and the capital i with a dot becomes two
/// characters.
std::string lower(std::string_view text);

}  // namespace translator::python_text
