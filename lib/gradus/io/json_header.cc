#include <gradus/io/json_header.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <limits>
#include <set>

namespace gradus::io {
namespace {

void append_utf8(uint32_t code, std::string& out) {
  auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)),
        put(0x80 | (code & 0x3F));
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Header header() {
    if (!valid_utf8(text_)) throw std::string("the header is not valid UTF-8");
    Header out;
    bool metadata_seen = false;
    std::set<std::string> names;
    skip_space();
    object([&](const std::string& name) {
      if (name == "__metadata__") {
        if (metadata_seen) throw std::string("__metadata__ occurs twice");
        metadata_seen = true;
        object([&](const std::string& key) {
          if (!out.metadata.emplace(key, string()).second)
            throw fmt::format("the metadata \"{}\" occurs twice", key);
        });
        return;
      }
      if (!names.insert(name).second) throw fmt::format("tensor \"{}\" occurs twice", name);
      out.tensors.push_back(entry(name));
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
    if (at_ >= text_.size() || text_[at_] != c) wrong(description);
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
    bool dtype = false, shape = false, offsets = false;
    auto once = [&](bool& seen, const std::string& key) {
      if (seen) throw fmt::format("tensor \"{}\": {} occurs twice", name, key);
      seen = true;
    };
    object([&](const std::string& key) {
      if (key == "dtype") {
        once(dtype, key);
        e.dtype = string();
      } else if (key == "shape") {
        once(shape, key);
        e.shape = numbers();
      } else if (key == "data_offsets") {
        once(offsets, key);
        std::vector<int64_t> two = numbers();
        if (two.size() != 2)
          throw fmt::format("tensor \"{}\": data_offsets must be two numbers: {} given", name, two.size());
        e.begin = two[0], e.end = two[1];
      } else {
        throw fmt::format("tensor \"{}\": unknown field \"{}\"", name, key);
      }
    });
    for (auto [seen, key] : {std::pair(dtype, "dtype"), {shape, "shape"}, {offsets, "data_offsets"}})
      if (!seen) throw fmt::format("tensor \"{}\": {} is missing", name, key);
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
    const char* rule = "a whole number that is not negative";
    size_t start = at_;
    int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      int64_t digit = text_[at_] - '0';
      if (value > (std::numeric_limits<int64_t>::max() - digit) / 10) {
        at_ = start;
        wrong("a number below 2^63");
      }
      value = value * 10 + digit;
      ++at_;
    }
    bool leading_zero = at_ - start > 1 && text_[start] == '0';
    if (at_ == start || leading_zero || peek() == '.' || peek() == 'e' || peek() == 'E') {
      at_ = start;
      wrong(rule);
    }
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
      char c = peek();
      if (c >= '0' && c <= '9') value = value * 16 + static_cast<uint32_t>(c - '0');
      else if (c >= 'a' && c <= 'f') value = value * 16 + static_cast<uint32_t>(c - 'a' + 10);
      else if (c >= 'A' && c <= 'F') value = value * 16 + static_cast<uint32_t>(c - 'A' + 10);
      else wrong("a hexadecimal digit");
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
    size_t length = first < 0x80         ? 1
                    : first >> 5 == 0x6  ? 2
                    : first >> 4 == 0xE  ? 3
                    : first >> 3 == 0x1E ? 4
                                         : 0;
    if (length == 0) return false;
    uint32_t code = length == 1 ? first : first & (0x7Fu >> length);
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
  std::string out = "{";
  auto separate = [&] {
    if (out.back() != '{') out += ',';
  };
  if (!header.metadata.empty()) {
    out += "\"__metadata__\":{";
    for (const auto& [key, value] : header.metadata) {
      separate();
      out += quoted(key) + ":" + quoted(value);
    }
    out += '}';
  }
  for (const HeaderEntry& e : header.tensors) {
    separate();
    out += fmt::format("{}:{{\"dtype\":{},\"shape\":[{}],\"data_offsets\":[{},{}]}}", quoted(e.name),
                       quoted(e.dtype), fmt::join(e.shape, ","), e.begin, e.end);
  }
  return out + "}";
}

}  // namespace gradus::io
