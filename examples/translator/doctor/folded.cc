#include <translator/doctor/folded.h>

#include <common/split.h>
#include <common/utf8.h>

#include <algorithm>

namespace translator::doctor {
namespace {

bool is_question_mark(char32_t c) { return c == U'?' || c == U'\uFF1F' || c == U'\u061F' || c == U'\u037E'; }

// What most texts are made of, without a look into the tables of Unicode.
bool is_ascii_letter(char32_t c) { return (c | 0x20) >= U'a' && (c | 0x20) <= U'z'; }

}  // namespace

uint64_t hash_of(std::u32string_view text, uint64_t seed) {
  Fnv1a sum{seed};
  for (char32_t c : text) sum.mix(c);
  return sum.hash ^ (sum.hash >> 29);
}

size_t Folded::words() const {
  size_t out = text.empty() ? 0 : 1;
  for (char32_t c : text) out += c == U' ' ? 1 : 0;
  return out;
}

std::vector<std::u32string_view> words_in(const Folded& folded) {
  return views_of<char32_t>(folded.text, U' ');
}

uint64_t Folded::hash() const { return hash_of(text); }

Folded fold(std::u32string_view text) {
  Folded out;
  out.text.reserve(text.size());
  bool between = false;  // words
  for (char32_t c : text) {
    char32_t kept = 0;
    if (c < 0x80) {
      if (is_ascii_letter(c)) {
        kept = c | 0x20;
        ++out.letters;
        ++(c == kept ? out.small : out.capitals);
        if (out.text.empty()) (c == kept ? out.begins_small : out.begins_capital) = true;
      } else if (c >= U'0' && c <= U'9') {
        kept = c;
      }
    } else if (utf8::is_letter(c)) {
      kept = utf8::to_lower(c);
      ++out.letters;
      const bool capital = kept != c, small = !capital && utf8::to_upper(c) != c;
      out.capitals += capital;
      out.small += small;
      if (out.text.empty()) out.begins_capital = capital, out.begins_small = small;
    } else if (utf8::is_mark(c) || utf8::is_number(c)) {
      kept = c;
    }
    const bool question = is_question_mark(c);
    if (!kept && !question) {
      between = true;
      continue;
    }
    if ((between || question) && !out.text.empty()) out.text += U' ';
    out.text += question ? U'?' : kept;
    between = question;
  }
  return out;
}

}  // namespace translator::doctor
