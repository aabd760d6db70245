#include <common/json_text.h>
#include <common/utf8.h>

#include <cstdio>
#include <istream>
#include <iterator>

namespace json_text {

namespace {

using json = nlohmann::ordered_json;
namespace utf8 = translator::utf8;

std::string all_of(std::istream& stream) { return {std::istreambuf_iterator<char>(stream), {}}; }

// What no file of ours holds, and what would take the stack or the time of whoever reads it: values are copied
// and written by recursion, and an ordered object finds its keys one after the other.
constexpr int kDeepest = 100;
constexpr size_t kMostKeys = 50'000;

// nullptr, or what is too much.
const char* excess(std::string_view text) {
  int depth = 0;
  size_t keys = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      while (++i < text.size() && text[i] != '"') i += text[i] == '\\';
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return "more than 100 values lie within each other";
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ':' && ++keys > kMostKeys) {
      return "more than 50000 names";
    }
  }
  return nullptr;
}

}  // namespace

json parse(std::string_view text) {
  if (const char* what = excess(text)) throw json::parse_error::create(101, text.size(), what, nullptr);
  return json::parse(text.data(), text.data() + text.size());
}
json parse(std::istream& stream) { return parse(all_of(stream)); }

json parse_or_discarded(std::string_view text) {
  if (excess(text)) return json(json::value_t::discarded);
  return json::parse(text.data(), text.data() + text.size(), nullptr, false);
}
json parse_or_discarded(std::istream& stream) { return parse_or_discarded(all_of(stream)); }

std::string dump(const json& value, int indent) {
  // What acts on a terminal is spelt out where JSON leaves it alone. But for ends of lines only texts have any.
  std::string out;
  for (char32_t c : utf8::decode(value.dump(indent))) {
    if (c == '\n' || !utf8::is_unprintable(c)) {
      utf8::append(out, c);
    } else {
      char spelt[16];
      std::snprintf(spelt, sizeof spelt, "\\u%04x", static_cast<unsigned>(c));
      out += spelt;
    }
  }
  return out;
}

}  // namespace json_text
