#include "json_text.h"

#include <istream>
#include <iterator>

namespace json_text {

namespace {

using json = nlohmann::ordered_json;

std::string all_of(std::istream& stream) { return {std::istreambuf_iterator<char>(stream), {}}; }

}  // namespace

json parse(std::string_view text) { return json::parse(text.data(), text.data() + text.size()); }
json parse(std::istream& stream) { return parse(all_of(stream)); }

json parse_or_discarded(std::string_view text) {
  return json::parse(text.data(), text.data() + text.size(), nullptr, false);
}
json parse_or_discarded(std::istream& stream) { return parse_or_discarded(all_of(stream)); }

std::string dump(const json& value, int indent) { return value.dump(indent); }

}  // namespace json_text
