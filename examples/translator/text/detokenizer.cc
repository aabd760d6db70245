#include <translator/text/detokenizer.h>

#include <translator/text/tokenizer.h>
#include <common/utf8.h>

#include <algorithm>
#include <initializer_list>

namespace translator {
namespace {

using std::string_view;

bool one_of(string_view token, std::initializer_list<string_view> set) {
  return std::find(set.begin(), set.end(), token) != set.end();
}

bool is_run_of_stops(string_view token) { return token.find_first_not_of('.') == string_view::npos; }

bool always_closes(string_view token) {
  return is_run_of_stops(token) || one_of(token, {",", ")", "]", "}", "…", "।", "॥", "”", "’", "›"});
}

// In French these stand off from the word before them.
bool closes_with_space_in_french(string_view token) { return one_of(token, {"?", "!", ":", ";", "%", "»"}); }

bool opens(string_view token) {
  return one_of(token, {"(", "[", "{", "“", "‘", "„", "¿", "¡", "‹", "$", "£", "#", "@"});
}

// Han, kana, Thai ..., and the stops and brackets that are written with Han.
bool is_of_unspaced(string_view token) {
  if (token.empty() || static_cast<unsigned char>(token[0]) < 0xE0) return false;
  const std::u32string code = utf8::decode_lossy(token);
  const char32_t first = code.front();
  return is_unspaced(first) || (first >= 0x3000 && first <= 0x303F) || (first >= 0xFF00 && first <= 0xFF65);
}

bool starts_with_digit(string_view token) { return !token.empty() && token[0] >= '0' && token[0] <= '9'; }

constexpr string_view kJoinedMark = "\uFFED", kSpacedMark = "\u2581";

bool is_marked(string_view token, string_view mark) {
  return token.size() > mark.size() && token.starts_with(mark);
}

// Which sides of a token want no space.
struct Spacing {
  bool glue_before = false;
  bool glue_after = false;
};

class Joiner {
 public:
  explicit Joiner(Typography typography) : typography_(typography) {}

  // Whether a space belongs before the token, which comes next.
  bool wants_space(string_view token, string_view next) {
    spacing_ = space(token, next);
    return !first_ && !glue_ && !spacing_.glue_before;
  }

  void add(string_view token, bool space) {
    if (space) out_.push_back(' ');
    out_ += token;
    glue_ = spacing_.glue_after;
    previous_ = token;
    first_ = false;
  }

  std::string text() { return std::move(out_); }

 private:
  bool french() const { return typography_ == Typography::french; }

  Spacing space(string_view token, string_view next) {
    if (token == "\"") return quote(double_open_);
    if (token == "'") return quote(single_open_);
    if (always_closes(token)) return {.glue_before = true};
    if (closes_with_space_in_french(token)) {
      const bool after_mark = one_of(token, {"?", "!"}) && one_of(previous_, {"?", "!"});
      return {.glue_before = !french() || after_mark};
    }
    if (opens(token)) return {.glue_after = true};
    if (token == "«") return {.glue_after = !french()};
    if (token == "€") return {.glue_after = !french() && starts_with_digit(next)};
    if (token == "/") return {.glue_before = true, .glue_after = true};
    if (is_of_unspaced(token)) return {.glue_after = is_of_unspaced(next)};
    return {.glue_after = is_elision(token)};
  }

  static Spacing quote(bool& open) {
    open = !open;
    return open ? Spacing{.glue_after = true} : Spacing{.glue_before = true};
  }

  Typography typography_;
  std::string out_;
  string_view previous_;
  Spacing spacing_;
  bool first_ = true;
  bool glue_ = false;
  bool double_open_ = false;
  bool single_open_ = false;
};

}  // namespace

string_view without_mark(string_view token) {
  for (string_view mark : {kJoinedMark, kSpacedMark})
    if (is_marked(token, mark)) return token.substr(mark.size());
  return token;
}

std::string detokenize(const std::vector<std::string>& tokens, Typography typography) {
  Joiner joiner(typography);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const string_view token = without_mark(tokens[i]);
    bool space =
        joiner.wants_space(token, i + 1 < tokens.size() ? without_mark(tokens[i + 1]) : string_view());
    if (is_marked(tokens[i], kJoinedMark)) space = false;
    if (is_marked(tokens[i], kSpacedMark)) space = i > 0;
    joiner.add(token, space);
  }
  return joiner.text();
}

std::vector<std::string> mark_spaces(const std::vector<std::string>& tokens, const std::vector<bool>& spaced,
                                     Typography typography) {
  std::vector<std::string> out = tokens;
  Joiner joiner(typography);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const string_view next = i + 1 < tokens.size() ? string_view(tokens[i + 1]) : string_view();
    const bool space = joiner.wants_space(tokens[i], next);
    if (i > 0 && space != spaced[i]) out[i].insert(0, spaced[i] ? kSpacedMark : kJoinedMark);
    joiner.add(tokens[i], space);
  }
  return out;
}

}  // namespace translator
