#include <translator/doctor/contents.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include <common/utf8.h>

namespace translator::doctor {
namespace {

constexpr size_t kRun = 4;          // repetitions that are no emphasis
constexpr size_t kFewestAlike = 3;  // words: shorter than that, names and interjections are copies by right

// How often one to three words stand one behind the other at most, and where.
struct Run {
  size_t times = 1, begin = 0, words = 1;
};
Run longest_run(const std::vector<std::u32string_view>& words) {
  Run out;
  for (size_t period = 1; period <= 3; ++period)
    for (size_t i = period, same = 0; i < words.size(); ++i) {
      same = words[i] == words[i - period] ? same + 1 : 0;
      if (const size_t times = same / period + 1; times > out.times)
        out = {times, i + 1 - same - period, period};
    }
  return out;
}

// How often a side says three words or more, and nothing else: 1 is usual.
size_t said_in_all(const std::vector<std::u32string_view>& words) {
  for (size_t period = 3; 2 * period <= words.size(); ++period)
    if (words.size() % period == 0 &&
        std::equal(words.begin() + static_cast<long>(period), words.end(), words.begin()))
      return words.size() / period;
  return 1;
}

// The first character of what most letters of European scripts become when their UTF-8 is read as Latin-1,
// and the second.
bool is_misread(char32_t first, char32_t second) {
  if (first == 0xE2) return second == 0x20AC;  // quotes and dashes, as Windows reads them
  const bool begins =
      (first >= 0xC2 && first <= 0xC5) || first == 0xCE || first == 0xCF || first == 0xD0 || first == 0xD1;
  const bool usual_next = second == 0xA0 || second == 0xAB || second == 0xBB;  // behind a capital
  return begins && second >= 0xA0 && second <= 0xBF && (!usual_next || first <= 0xC3);
}

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

// The end of a name from `at` on.
size_t name_end(std::string_view text, size_t at) {
  while (at < text.size() && is_name_character(text[at])) ++at;
  return at;
}

// Whether the @ that stands at `at` has a name before it and a host with a dot behind it.
bool is_mail_address(std::string_view text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && (is_name_character(text[end]) || text[end] == '-')) ++end;
  const size_t dot = text.substr(0, end).find('.', at + 1);
  return at > 0 && is_name_character(text[at - 1]) && dot > at + 1 && dot < end - 1;
}

// What stands at `at`: "<b>" for any tag of that name, "&amp;", "%s", "{name}", "www" for any web address, "@"
// for a mail address; nothing.
std::string markup_at(std::string_view text, size_t at) {
  const char c = text[at];
  if (c == '<') {
    const size_t name = at + 1 + (at + 1 < text.size() && text[at + 1] == '/' ? 1 : 0);
    const size_t end = name_end(text, name), close = text.find_first_of("<>", end);
    if (end == name || !std::isalpha(static_cast<unsigned char>(text[name])) ||
        close == std::string_view::npos || text[close] == '<')
      return "";
    std::string tag;
    for (char k : text.substr(name, end - name))
      tag += static_cast<char>(std::tolower(static_cast<unsigned char>(k)));
    return "<" + tag + ">";
  }
  if (c == '&') {
    const size_t begin = at + 1 + (at + 1 < text.size() && text[at + 1] == '#' ? 1 : 0),
                 end = name_end(text, begin);
    const bool ends = end > begin && end - begin <= 10 && end < text.size() && text[end] == ';';
    return ends ? std::string(text.substr(at, end + 1 - at)) : "";
  }
  if (c == '{') {
    const size_t end = name_end(text, at + 1);
    return end < text.size() && text[end] == '}' ? std::string(text.substr(at, end + 1 - at)) : "";
  }
  if (c == '%' && (at == 0 || !std::isdigit(static_cast<unsigned char>(text[at - 1])))) {
    size_t end = at + 1;  // %s, %2$d, %.3f
    while (end < text.size() &&
           (std::isdigit(static_cast<unsigned char>(text[end])) || text[end] == '$' || text[end] == '.'))
      ++end;
    const bool letter =
        end < text.size() && std::string_view("sdifuxg@").find(text[end]) != std::string_view::npos;
    const bool over = end + 1 >= text.size() || !std::isalpha(static_cast<unsigned char>(text[end + 1]));
    return letter && over ? std::string(text.substr(at, end + 1 - at)) : "";
  }
  if (c == '@') return is_mail_address(text, at) ? "@" : "";
  for (std::string_view address : {"http://", "https://", "www."})
    if (text.substr(at).starts_with(address) && (at == 0 || !is_name_character(text[at - 1]))) return "www";
  return "";
}

std::set<std::string> markup_of(std::string_view text) {
  std::set<std::string> out;
  for (size_t at = text.find_first_of("<&{%hw@"); at != std::string_view::npos;
       at = text.find_first_of("<&{%hw@", at + 1))
    if (std::string found = markup_at(text, at); !found.empty()) out.insert(std::move(found));
  return out;
}

// A digit's value: decimal digits stand in rows of ten in Unicode.
char digit_of(char32_t c) {
  if (c < 0x80) return static_cast<char>(c);
  int value = 0;
  for (char32_t k = c; utf8::is_digit(k - 1); --k) ++value;
  return static_cast<char>('0' + value % 10);
}

bool is_any_digit(char32_t c) { return c < 0x80 ? c >= U'0' && c <= U'9' : utf8::is_digit(c); }

bool is_separator(char32_t c) { return c == U'.' || c == U',' || c == U'\'' || utf8::is_space(c); }

// Runs of digits; those of 1,500 and of 1 500 are one: a separator before three digits.
std::vector<std::string> numbers_in(std::u32string_view text) {
  std::vector<std::string> out;
  auto is_digit = [&](size_t i) { return i < text.size() && is_any_digit(text[i]); };
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(i)) continue;
    const bool goes_on = i >= 1 && is_digit(i - 1);
    const bool thousands = i >= 2 && is_separator(text[i - 1]) && is_digit(i - 2) && is_digit(i + 1) &&
                           is_digit(i + 2) && !is_digit(i + 3);
    if (!goes_on && !thousands) out.emplace_back();
    out.back() += digit_of(text[i]);
  }
  return out;
}

std::string without_zeros(const std::string& number, bool last) {
  const size_t first = number.find_first_not_of('0');
  if (first == std::string::npos) return "";
  return number.substr(first, last ? number.find_last_not_of('0') - first + 1 : std::string::npos);
}

bool is_same_number(const std::string& a, const std::string& b) {
  if (a.size() <= 2 && b.size() <= 2) {
    const int hour = std::stoi(a), other = std::stoi(b);
    return hour == other || (std::max(hour, other) <= 24 && std::abs(hour - other) == 12);
  }
  const auto& [longer, shorter] = a.size() > b.size() ? std::tie(a, b) : std::tie(b, a);
  if (longer.size() == 4 && shorter.size() == 2 && longer.ends_with(shorter)) return true;
  const bool millions = longer.size() >= shorter.size() + 3;  // 2,000,000 and 2 million
  return without_zeros(a, millions) == without_zeros(b, millions);
}

// Takes from each side what the other has, too.
void cross_out(std::vector<std::string>& a, std::vector<std::string>& b,
               bool (*same)(const std::string&, const std::string&)) {
  std::erase_if(a, [&](const std::string& x) {
    const auto other = std::find_if(b.begin(), b.end(), [&](const std::string& y) { return same(x, y); });
    if (other == b.end()) return false;
    b.erase(other);
    return true;
  });
}

std::string together(const std::vector<std::string>& numbers) {
  std::string out;
  for (const std::string& n : numbers) out += n;
  return without_zeros(out, true);
}

}  // namespace

std::string odd_characters(std::u32string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (c >= 0x20 && c < 0x7F) continue;
    if (utf8::is_control(c) && c != U'\t')
      return fmt::format("a control character, U+{:04X}", static_cast<uint32_t>(c));
    if (c == 0xFFFD) return "U+FFFD, which stands for what could not be read";
    if ((c >= 0xE000 && c <= 0xF8FF) || c >= 0xF0000)
      return fmt::format("a private character, U+{:04X}", static_cast<uint32_t>(c));
    if (i + 1 < text.size() && is_misread(c, text[i + 1]))
      return fmt::format("\"{}\" looks like UTF-8 that was read as Latin-1", utf8::encode(text.substr(i, 2)));
  }
  return "";
}

std::string repetition(const Folded& source, const Folded& target) {
  const auto s = words_in(source), t = words_in(target);
  const Run a = longest_run(s), b = longest_run(t);
  const auto& [more, words, less] = a.times > b.times ? std::tie(a, s, b) : std::tie(b, t, a);
  if (more.times >= kRun && more.times >= less.times + kRun - 1) {
    std::string what;
    for (size_t i = more.begin; i < more.begin + more.words; ++i)
      what += (what.empty() ? "" : " ") + utf8::encode(words[i]);
    return fmt::format("\"{}\" {} times running", what, more.times);
  }
  const size_t source_says = said_in_all(s), target_says = said_in_all(t);
  if (source_says == target_says) return "";
  return fmt::format("the {} says the same {} times", source_says > target_says ? "source" : "target",
                     std::max(source_says, target_says));
}

std::string likeness(const Folded& source, const Folded& target) {
  if (source.letters == 0 || target.letters == 0) return "";
  if (source.text == target.text) return source.words() >= kFewestAlike ? "the same on both sides" : "";
  const size_t longer = std::max(source.text.size(), target.text.size()),
               shorter = std::min(source.text.size(), target.text.size());
  if (longer > shorter + shorter / 2) return "";
  auto s = words_in(source), t = words_in(target);
  if (std::min(s.size(), t.size()) <= kFewestAlike) return "";
  std::sort(s.begin(), s.end());
  std::sort(t.begin(), t.end());
  std::vector<std::u32string_view> common;
  std::set_intersection(s.begin(), s.end(), t.begin(), t.end(), std::back_inserter(common));
  if (5 * common.size() < 4 * std::max(s.size(), t.size())) return "";
  return fmt::format("{} of {} words are the same on both sides", common.size(),
                     std::max(s.size(), t.size()));
}

std::string markup_difference(std::string_view source, std::string_view target) {
  const std::set<std::string> s = markup_of(source), t = markup_of(target);
  if (s == t) return "";
  for (const std::string& m : s)
    if (!t.count(m)) return m + " in the source only";
  for (const std::string& m : t)
    if (!s.count(m)) return m + " in the target only";
  return "";
}

std::string number_difference(std::u32string_view source, std::u32string_view target) {
  if (std::none_of(source.begin(), source.end(), is_any_digit) ||
      std::none_of(target.begin(), target.end(), is_any_digit))
    return "";
  std::vector<std::string> s = numbers_in(source), t = numbers_in(target);
  if (together(s) == together(t)) return "";
  if (s.size() * t.size() > 1'000'000) return "";  // the time to compare them grows so
  cross_out(s, t, [](const std::string& a, const std::string& b) { return a == b; });
  cross_out(s, t, is_same_number);
  return s.empty() || t.empty() ? "" : fmt::format("{} against {}", s[0], t[0]);
}

}  // namespace translator::doctor
