#include <translator/text/python_text.h>

#include <common/utf8.h>

namespace translator::python_text {
namespace {

bool has_case(char32_t c) { return utf8::to_lower(c) != c || utf8::to_upper(c) != c; }

// Whether a letter with case stands next to code[at] in the direction of `step`, apostrophes and accents not
// counted.
bool beside_letter(const std::u32string& code, size_t at, size_t step) {
  constexpr std::u32string_view kIgnored = U"'.:^`\u00A8\u00B4\u00B7\u2018\u2019";
  for (at += step; at < code.size(); at += step) {  // below 0 it is beyond the end
    if (kIgnored.find(code[at]) == kIgnored.npos && !utf8::is_mark(code[at]) && !utf8::is_format(code[at]))
      return has_case(code[at]);
  }
  return false;
}

}  // namespace

bool is_space(char32_t c) { return utf8::is_space(c) || (c >= 0x1C && c <= 0x1F); }

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  std::string token;
  for (char32_t c : utf8::decode_lossy(text)) {
    if (!is_space(c)) {
      utf8::append(token, c);
    } else if (!token.empty()) {
      out.push_back(std::move(token));
      token.clear();
    }
  }
  if (!token.empty()) out.push_back(std::move(token));
  return out;
}

std::string trim_end(std::string_view text) {
  std::u32string code = utf8::decode_lossy(text);
  while (!code.empty() && is_space(code.back())) code.pop_back();
  return utf8::encode(code);
}

std::string lower(std::string_view text) {
  const std::u32string code = utf8::decode_lossy(text);
  std::string out;
  for (size_t i = 0; i < code.size(); ++i) {
    const bool final_sigma =
        code[i] == U'\u03A3' && beside_letter(code, i, size_t(-1)) && !beside_letter(code, i, 1);
    utf8::append(out, final_sigma ? U'\u03C2' : code[i] == U'\u0130' ? U'i' : utf8::to_lower(code[i]));
    if (code[i] == U'\u0130') utf8::append(out, U'\u0307');
  }
  return out;
}

}  // namespace translator::python_text
