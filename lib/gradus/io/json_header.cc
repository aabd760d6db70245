#include <gradus/io/json_header.h>

#include <fmt/ranges.h>

#include <charconv>
#include <set>

namespace gradus::io {
namespace {

void append_utf8(uint32_t code, std::string& out) {
  static constexpr uint32_t leads[] = {0, 0xC0, 0xE0, 0xF0};
  int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes behind the first
  out += static_cast<char>(leads[more] | code >> 6 * more);
  while (more-- > 0) out += static_cast<char>(0x80 | (code >> 6 * more & 0x3F));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Header header() {
    if (!valid_utf8(text_)) throw std::string("the header is not valid UTF-8");
    Header out;
    std::set<std::string> names;
    skip_space();
    object([&](const std::string& name) {
      const bool tensor = name != "__metadata__";
      if (!names.insert(name).second)
        throw tensor ? fmt::format("tensor \"{}\" occurs twice", name) : name + " occurs twice";
      if (tensor) return out.tensors.push_back(entry(name));
      object([&](const std::string& key) {
        if (!out.metadata.emplace(key, string()).second)
          throw fmt::format("the metadata \"{}\" occurs twice", key);
      });
    });
    skip_space();
    if (at_ != text_.size()) wrong("the end");
    return out;
  }

 private:
  [[noreturn]] void wrong(std::string_view expected) const {
    throw fmt::format("the header is not valid JSON: expected {} at byte {}", expected, at_);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() && (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')) ++at_;
  }
  void expect(char c, std::string_view description) {
    skip_space();
    if (peek() != c) wrong(description);
    ++at_;
    skip_space();
  }

  // value(key) reads one value.
  template <class F>
  void object(F&& value) {
    expect('{', "'{'");
    if (peek() == '}') return void(++at_);
    for (;;) {
      std::string key = string();
      expect(':', "':'");
      value(key);
      skip_space();
      if (peek() == '}') return void(++at_);
      expect(',', "',' or '}'");
    }
  }

  HeaderEntry entry(const std::string& name) {
    HeaderEntry e;
    e.name = name;
    std::set<std::string> seen;
    object([&](const std::string& key) {
      if (!seen.insert(key).second) throw fmt::format("tensor \"{}\": {} occurs twice", name, key);
      if (key == "dtype") {
        e.dtype = string();
      } else if (key == "shape") {
        e.shape = numbers();
      } else if (key == "data_offsets") {
        std::vector<int64_t> two = numbers();
        if (two.size() != 2)
          throw fmt::format("tensor \"{}\": data_offsets must be two numbers: {} given", name, two.size());
        e.begin = two[0], e.end = two[1];
      } else {
        throw fmt::format("tensor \"{}\": unknown field \"{}\"", name, key);
      }
    });
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (seen.count(field) == 0) throw fmt::format("tensor \"{}\": {} is missing", name, field);
    return e;
  }

  std::vector<int64_t> numbers() {
    std::vector<int64_t> out;
    expect('[', "'['");
    if (peek() == ']') return ++at_, out;
    for (;;) {
      out.push_back(number());
      skip_space();
      if (peek() == ']') return ++at_, out;
      expect(',', "',' or ']'");
    }
  }

  int64_t number() {
    const char* begin = text_.data() + at_;
    int64_t value = 0;
    auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    const char first = peek();
    if (first != '-' && error == std::errc::result_out_of_range) wrong("a number below 2^63");
    const bool leading_zero = first == '0' && end - begin > 1;
    const std::string_view rest = text_.substr(at_ + static_cast<size_t>(end - begin), 1);
    if (first == '-' || error != std::errc() || leading_zero || rest == "." || rest == "e" || rest == "E")
      wrong("a whole number that is not negative");
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  std::string string() {
    skip_space();
    if (peek() != '"') wrong("a string");
    ++at_;
    std::string out;
    for (;;) {
      if (at_ >= text_.size()) wrong("'\"'");
      char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) wrong("no control character in a string");
      ++at_;
      if (c == '"') return out;
      if (c != '\\') out += c;
      else escape(out);
    }
  }

  void escape(std::string& out) {
    static constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    char c = peek();
    if (size_t i = letters.find(c); c != '\0' && i != letters.npos) {
      out += meanings[i];
      ++at_;
      return;
    }
    if (c != 'u') wrong("an escape");
    ++at_;
    uint32_t code = hex4();
    if (code >= 0xDC00 && code <= 0xDFFF) wrong("a high surrogate before");
    if (code >= 0xD800 && code <= 0xDBFF) {
      if (text_.substr(at_, 2) != "\\u") wrong("a low surrogate");
      at_ += 2;
      uint32_t low = hex4();
      if (low < 0xDC00 || low > 0xDFFF) wrong("a low surrogate before");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(code, out);
  }

  uint32_t hex4() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const size_t digit = std::string_view("0123456789abcdefABCDEF").find(peek());
      if (digit == std::string_view::npos) wrong("a hexadecimal digit");
      value = value * 16 + static_cast<uint32_t>(digit < 16 ? digit : digit - 6);
    }
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else out += c;
  }
  return out + "\"";
}

}  // namespace

bool valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    auto byte = [&](size_t k) { return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u; };
    unsigned first = byte(0);
    size_t length = first < 0x80 ? 1 : first < 0xC0 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (length == 0) return false;
    uint32_t code = first & (0xFFu >> length);  // from 0xF8 on: too large
    for (size_t k = 1; k < length; ++k) {
      if (byte(k) >> 6 != 0x2) return false;
      code = code << 6 | (byte(k) & 0x3F);
    }
    static constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < smallest[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    i += length;
  }
  return true;
}

Header parse_header(std::string_view text) { return Parser(text).header(); }

std::string write_header(const Header& header) {
  std::vector<std::string> metadata, members;
  for (const auto& [key, value] : header.metadata) metadata.push_back(quoted(key) + ":" + quoted(value));
  if (!metadata.empty()) members.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(metadata, ",")));
  for (const HeaderEntry& e : header.tensors)
    members.push_back(fmt::format("{}:{{\"dtype\":{},\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                                  quoted(e.name), quoted(e.dtype), fmt::join(e.shape, ","), e.begin, e.end));
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

}  // namespace gradus::io
