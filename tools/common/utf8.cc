#include <common/utf8.h>

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>

namespace translator::utf8 {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Reads one code point at `at` and moves past it. An ill-formed byte gives -1 and is passed over alone.
utf8proc_int32_t next(std::string_view text, size_t& at) {
  utf8proc_int32_t c = -1;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto left = static_cast<utf8proc_ssize_t>(text.size() - at);
  const utf8proc_ssize_t used = utf8proc_iterate(bytes + at, left, &c);
  if (used <= 0 || c < 0) {
    ++at;
    return -1;
  }
  at += static_cast<size_t>(used);
  return c;
}

// Whether its general category is one of those from `first` to `last`, in Unicode's order.
bool is_in(char32_t c, utf8proc_category_t first, utf8proc_category_t last) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= first && category <= last;
}

}  // namespace

std::optional<size_t> first_invalid_byte(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const size_t start = at;
    if (next(text, at) < 0) return start;
  }
  return std::nullopt;
}

std::string describe_invalid_byte(std::string_view text, size_t before) {
  const auto bad = first_invalid_byte(text);
  if (!bad) return "";
  return fmt::format("byte {} (0x{:02x}) is not valid UTF-8", before + *bad + 1,
                     static_cast<unsigned char>(text[*bad]));
}

std::u32string decode(std::string_view text) {
  if (const std::string bad = describe_invalid_byte(text); !bad.empty()) throw std::invalid_argument(bad);
  return decode_lossy(text);
}

std::u32string decode_lossy(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const utf8proc_int32_t c = next(text, at);
    out.push_back(c < 0 ? kReplacement : static_cast<char32_t>(c));
  }
  return out;
}

void append(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
    return;
  }
  utf8proc_uint8_t bytes[4];
  auto code = static_cast<utf8proc_int32_t>(c);
  if (!utf8proc_codepoint_valid(code)) code = static_cast<utf8proc_int32_t>(kReplacement);
  const utf8proc_ssize_t n = utf8proc_encode_char(code, bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(n));
}

std::string encode(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char32_t c : text) append(out, c);
  return out;
}

std::string nfc(std::string_view text) {
  bool ascii = true;
  for (char c : text) ascii = ascii && static_cast<unsigned char>(c) < 0x80;
  if (ascii) return std::string(text);
  const std::string valid = encode(decode_lossy(text));
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                          static_cast<utf8proc_ssize_t>(valid.size()), &composed,
                                          static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, &std::free);
  if (n == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (n < 0) throw std::runtime_error(fmt::format("utf8::nfc: {}", utf8proc_errmsg(n)));
  return std::string(reinterpret_cast<const char*>(composed), static_cast<size_t>(n));
}

std::string capitalize(std::string_view text) {
  std::u32string code = decode_lossy(text);
  for (char32_t& c : code) {
    if (is_number(c)) break;
    if (!is_letter(c)) continue;
    c = to_upper(c);
    break;
  }
  return encode(code);
}

int display_width(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    const utf8proc_int32_t c = next(text, at);
    const bool spacing = c >= 0 && utf8proc_category(c) == UTF8PROC_CATEGORY_MC;
    width += c < 0 || spacing ? 1 : utf8proc_charwidth(c);
  }
  return width;
}

bool width_is_certain(std::string_view text) {
  for (char32_t c : decode_lossy(text)) {
    if (is_mark(c) || is_format(c) || c >= 0x1F000) return false;
  }
  return true;
}

std::vector<std::string> graphemes(std::string_view text) {
  std::vector<std::string> out;
  utf8proc_int32_t state = 0;
  char32_t previous = 0;
  for (char32_t c : decode_lossy(text)) {
    const bool starts =
        out.empty() || utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous),
                                                        static_cast<utf8proc_int32_t>(c), &state);
    if (starts) out.emplace_back();
    append(out.back(), c);
    previous = c;
  }
  return out;
}

int widest(const std::vector<std::string>& texts) {
  int width = 0;
  for (const std::string& text : texts) width = std::max(width, display_width(text));
  return width;
}

std::string pad_left(std::string_view text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ').append(text);
}

std::string pad_right(std::string_view text, int width) {
  return std::string(text).append(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
}

std::string fit(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  if (width <= 0) return "";
  std::string out;
  int used = 0;
  for (const std::string& cluster : graphemes(text)) {
    const int w = display_width(cluster);
    if (used + w > width - 1) break;
    out += cluster;
    used += w;
  }
  return out + "…";
}

bool is_unprintable(char32_t c) {
  return is_control(c) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

std::string printable(std::string_view text) {
  std::u32string code = decode_lossy(text);
  for (char32_t& c : code)
    if (is_unprintable(c)) c = kReplacement;
  return encode(code);
}

std::string printable_lines(std::string_view text) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += printable(text.substr(at, end - at));
    if (end == text.size()) return out;
    out += '\n';
    at = end + 1;
  }
}

std::string markup(std::string_view text) {
  std::string out;
  for (char32_t c : decode_lossy(printable(text))) {  // XML has no control characters
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      append(out, c == 0xFFFE || c == 0xFFFF ? kReplacement : c);  // nor these two
  }
  return out;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || is_in(c, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

bool is_letter(char32_t c) { return is_in(c, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO); }
bool is_mark(char32_t c) { return is_in(c, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME); }
bool is_digit(char32_t c) { return is_in(c, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_ND); }
bool is_number(char32_t c) { return is_in(c, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO); }
bool is_control(char32_t c) { return is_in(c, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CC); }
bool is_format(char32_t c) { return is_in(c, UTF8PROC_CATEGORY_CF, UTF8PROC_CATEGORY_CF); }

char32_t to_lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

char32_t to_upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

std::string wrapped(const std::string& text, int width, int indent) {
  const std::string margin(static_cast<size_t>(std::max(indent, 0)), ' ');
  std::string out, line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!line.empty() && indent + display_width(line) + 1 + display_width(word) > width) {
      out += margin + line + '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? out : out + margin + line + '\n';
}

}  // namespace translator::utf8
