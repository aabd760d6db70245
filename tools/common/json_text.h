#pragma once

// JSON from text and back. nlohmann's own parse(), dump(), << and >> are templates that each unit would compile
// anew, for half a second or more; these are compiled once, and for ordered_json only, so that everything
// speaks that.

#include <iosfwd>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace json_text {

/// The value that the whole text, or all that is left of the stream, stands for. Text with more than 100 values
/// within each other, or more than 50,000 names, is as good as broken.
/// @throws nlohmann::ordered_json::parse_error, which says where.
nlohmann::ordered_json parse(std::string_view text);
nlohmann::ordered_json parse(std::istream& stream);

/// For text that may be broken, as the last line of a log is: then a value that is_discarded(), no error.
nlohmann::ordered_json parse_or_discarded(std::string_view text);
nlohmann::ordered_json parse_or_discarded(std::istream& stream);

/// The value as text: on one line, or on many with `indent` spaces for each level.
/// @throws nlohmann::ordered_json::type_error for strings that are not UTF-8.
std::string dump(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace json_text
