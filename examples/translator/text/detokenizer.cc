#include <translator/text/detokenizer.h>

#include <translator/text/tokenizer.h>
#include <common/utf8.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

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

bool ends_sentence(string_view token) { return one_of(token, {".", "?", "!", "।", "॥"}); }

bool starts_with_digit(string_view token) { return !token.empty() && token[0] >= '0' && token[0] <= '9'; }

// `i`, `i'm`, `i'd've`.
bool is_english_i(string_view token) { return token == "i" || token.starts_with("i'"); }

// Which sides of a token want no space.
struct Spacing {
  bool glue_before = false;
  bool glue_after = false;
};

class Joiner {
 public:
  explicit Joiner(const DetokenizerOptions& options) : options_(options) {}

  void add(string_view token, string_view next) {
    const Spacing spacing = space(token, next);
    if (!out_.empty() && !glue_ && !spacing.glue_before) out_.push_back(' ');
    out_ += options_.capitalize ? with_capital(token) : std::string(token);
    glue_ = spacing.glue_after;
    previous_ = token;
  }

  std::string text() { return std::move(out_); }

 private:
  bool french() const { return options_.typography == Typography::french; }

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
    return {.glue_after = is_elision(token)};
  }

  static Spacing quote(bool& open) {
    open = !open;
    return open ? Spacing{.glue_after = true} : Spacing{.glue_before = true};
  }

  std::string with_capital(string_view token) {
    const bool english_i = options_.typography == Typography::english && is_english_i(token);
    std::string out = sentence_start_ || english_i ? utf8::capitalize(token) : std::string(token);
    const auto code = utf8::decode_lossy(token);
    const bool has_word = std::any_of(code.begin(), code.end(),
                                      [](char32_t c) { return utf8::is_letter(c) || utf8::is_number(c); });
    if (has_word) sentence_start_ = false;
    if (ends_sentence(token)) sentence_start_ = true;
    return out;
  }

  DetokenizerOptions options_;
  std::string out_;
  string_view previous_;
  bool glue_ = false;
  bool double_open_ = false;
  bool single_open_ = false;
  bool sentence_start_ = true;
};

}  // namespace

std::string detokenize(const std::vector<std::string>& tokens, const DetokenizerOptions& options) {
  Joiner joiner(options);
  for (size_t i = 0; i < tokens.size(); ++i) {
    joiner.add(tokens[i], i + 1 < tokens.size() ? string_view(tokens[i + 1]) : string_view());
  }
  return joiner.text();
}

}  // namespace translator
