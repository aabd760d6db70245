#include <translator/text/sentences.h>

#include <algorithm>
#include <unordered_set>

#include <common/utf8.h>

namespace translator {
namespace {

using Code = std::u32string_view;

bool is_one_of(char32_t c, Code some) { return some.find(c) != Code::npos; }

// Stops behind which there must be a space, and those that need none: 。！？｡ and the full-width full stop.
bool is_stop(char32_t c) {
  return is_one_of(
      c, U".!?\u2026\u203C\u2047\u2048\u2049\u0964\u0965\u061F\u06D4\u1362\u1367\u104B\u17D4\u17D5");
}
bool is_wide_stop(char32_t c) { return is_one_of(c, U"\u3002\uFF01\uFF1F\uFF61\uFF0E"); }
bool is_closing(char32_t c) {
  return is_one_of(c, U"\"')]}\u2019\u201D\u00BB\u203A\u300D\u300F\u3011\uFF09\u201C");
}
bool is_opening(char32_t c) {
  return is_one_of(c, U"\"'([{\u2018\u201C\u00AB\u2039\u201E\u00BF\u00A1\u201A-\u2013\u2014");
}

// Names, numbers or more of the sentence follow these. Lower case, without the stop.
bool is_abbreviation(const std::string& word) {
  static const std::unordered_set<std::string> kWords = {
      "mr",   "mrs", "ms",  "dr",  "prof", "st",   "sr",     "jr",  "rev",    "gen", "col",  "capt", "lt",
      "sgt",  "gov", "sen", "rep", "hon",  "pres", "messrs", "mme", "mlle",   "mm",  "sra",  "srta", "hr",
      "fr",   "frl", "mt",  "ft",  "vs",   "cf",   "al",     "ca",  "approx", "ed",  "eds",  "vol",  "fig",
      "figs", "eq",  "sec", "ch",  "pp",   "jan",  "feb",    "mar", "apr",    "jun", "jul",  "aug",  "sep",
      "sept", "oct", "nov", "dec", "bzw",  "usw",  "evtl",   "ggf", "inkl",   "nr",  "str",  "tel",  "av",
      "bd",   "art", "env", "ex",  "op",   "cit",  "ibid",   "inc", "ltd",    "co",  "corp", "dept", "univ"};
  return kWords.count(word) > 0;
}
bool numbers_follow(const std::string& word) {
  static const std::unordered_set<std::string> kWords = {"no", "nos", "n", "p", "art", "chap", "abs", "kap"};
  return kWords.count(word) > 0;
}

// The word before the stop at `at`, with stops inside it.
Code word_before(Code text, size_t at) {
  size_t begin = at;
  while (begin > 0 &&
         (utf8::is_letter(text[begin - 1]) || utf8::is_mark(text[begin - 1]) || text[begin - 1] == U'.'))
    --begin;
  return text.substr(begin, at - begin);
}

std::string spelt_small(Code word) {
  std::string out;
  for (char32_t c : word) utf8::append(out, utf8::to_lower(c));
  return out;
}

bool is_small(char32_t c) { return utf8::is_letter(c) && utf8::to_upper(c) != c; }

// Whether a sentence ends with the stops [begin, end), behind which the next one would begin at `next`.
bool ends(Code text, size_t begin, size_t end, size_t next) {
  const bool soft =
      std::all_of(text.begin() + static_cast<long>(begin), text.begin() + static_cast<long>(end),
                  [](char32_t c) { return c == U'.' || c == U'\u2026'; });
  if (!soft) return true;
  while (next < text.size() && is_opening(text[next])) ++next;
  const char32_t first = next < text.size() ? text[next] : 0;
  if (is_small(first)) return false;
  if (end - begin > 1) return true;  // ... and a capital
  const Code word = word_before(text, begin);
  const bool initial = word.size() == 1 && utf8::is_letter(word[0]) && !is_small(word[0]);
  const std::string spelt = spelt_small(word);
  if (initial || is_abbreviation(spelt)) return false;
  if (numbers_follow(spelt) && utf8::is_digit(first)) return false;
  if (word.find(U'.') == Code::npos) return true;
  // e.g. and i.e. are never the end; p.m. and U.S. are, before a capital.
  return spelt != "e.g" && spelt != "i.e" && spelt != "z.b" && spelt != "d.h" && spelt != "u.a" &&
         spelt != "p.ej" && !utf8::is_digit(first);
}

}  // namespace

std::vector<SentenceOfText> sentences_of(std::string_view line) {
  const std::u32string text = utf8::decode_lossy(line);
  std::vector<SentenceOfText> out;
  size_t begin = 0;
  auto add = [&](size_t end, size_t next) {
    out.push_back({utf8::encode(Code(text).substr(begin, end - begin)),
                   utf8::encode(Code(text).substr(end, next - end))});
    begin = next;
  };
  for (size_t at = 0; at < text.size();) {
    if (!is_stop(text[at]) && !is_wide_stop(text[at])) {
      ++at;
      continue;
    }
    const size_t stops = at;
    bool wide = false;
    while (at < text.size() && (is_stop(text[at]) || is_wide_stop(text[at])))
      wide |= is_wide_stop(text[at++]);
    const size_t stops_end = at;
    auto closes = [&](size_t i) { return i < text.size() && is_closing(text[i]); };
    // A French quotation mark stands behind a space.
    auto closes_apart = [&] {
      return at + 1 < text.size() && utf8::is_space(text[at]) && text[at + 1] == U'\u00BB';
    };
    while (closes(at) || closes_apart()) ++at;
    size_t next = at;
    while (next < text.size() && utf8::is_space(text[next])) ++next;
    if (next < text.size() && (wide || next > at) && (wide || ends(text, stops, stops_end, next)))
      add(at, next);
  }
  if (begin < text.size()) {
    size_t end = text.size();
    while (end > begin && utf8::is_space(text[end - 1])) --end;
    add(end, text.size());
  }
  return out;
}

size_t tag_length(std::u32string_view text) {
  if (text.size() < 3 || text[0] != U'<') return 0;
  const char32_t kind = text[1];
  const bool tag = (kind >= U'a' && kind <= U'z') || (kind >= U'A' && kind <= U'Z') || is_one_of(kind, U"/!?");
  const size_t end = text.find_first_of(U"<>", 1);
  return tag && end != text.npos && text[end] == U'>' ? end + 1 : 0;
}

bool is_markup_line(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r\f\v"), last = line.find_last_not_of(" \t\r\f\v");
  if (begin == line.npos) return true;
  const std::u32string text = utf8::decode_lossy(line.substr(begin, last - begin + 1));
  return tag_length(text) == text.size();
}

}  // namespace translator
