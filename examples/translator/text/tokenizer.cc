#include <translator/text/tokenizer.h>

#include <common/utf8.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace translator {
namespace {

using Code = std::u32string_view;

constexpr char32_t kNonJoiner = 0x200C;
constexpr char32_t kJoiner = 0x200D;

// The plain spelling of the typographic variants that texts mix at will.
char32_t plain_spelling(char32_t c) {
  if (c < 0x80 && c > U' ' && c != U'`') return c;
  const auto is_one_of = [c](Code variants) { return variants.find(c) != Code::npos; };
  if (is_one_of(U"\u2018\u2019\u201B\u2032\u02BC\uFF07\u00B4`")) return U'\'';
  if (is_one_of(U"\u201C\u201D\u201E\u201F\u2033\uFF02")) return U'"';
  if (is_one_of(U"\u2010\u2011\u2212\uFF0D")) return U'-';
  return utf8::is_space(c) ? U' ' : c;
}

bool is_joiner(char32_t c) { return c == kJoiner || c == kNonJoiner; }

// SentencePiece's sign for a space, which a text cannot have as well.
constexpr char32_t kPieceSpace = 0x2581;
constexpr char32_t kByteOrderMark = 0xFEFF;

// What a character is read as; 0 where it is dropped.
char32_t read_as(char32_t c, const TokenizerOptions& options) {
  const char32_t plain = plain_spelling(c);
  if (plain == U' ') return U' ';
  if (options.plain) return utf8::is_control(c) || (utf8::is_format(c) && !is_joiner(c)) ? 0 : plain;
  if (utf8::is_unprintable(c) || c == kByteOrderMark) return 0;
  return c == kPieceSpace ? U'_' : c;
}

// Latin letters as far as apostrophes care: Basic Latin to Extended-B, Extended Additional.
bool is_latin(char32_t c) { return c < 0x250 || (c >= 0x1E00 && c < 0x1F00) || utf8::is_mark(c); }

// The stem of rule 1 in lower case: what French elides. `qu` covers que, jusque, lorsque, puisque, quoique.
bool is_elidable(Code stem) {
  if (stem.size() == 1) return Code(U"cçdjlmnst").find(stem[0]) != Code::npos;
  return stem.ends_with(U"qu");
}

// Words with an apostrophe that is part of their spelling, in lower case.
bool is_fixed_word(Code stem, Code suffix) {
  static constexpr std::pair<Code, Code> kWords[] = {
      {U"aujourd", U"hui"}, {U"ma", U"am"},  {U"y", U"all"},       {U"ne", U"er"},
      {U"e", U"er"},        {U"rock", U"n"}, {U"rock'n", U"roll"}, {U"grand", U"mère"}};
  if (stem == U"o" || (stem == U"prud" && suffix.starts_with(U"hom"))) return true;
  return std::find(std::begin(kWords), std::end(kWords), std::pair(stem, suffix)) != std::end(kWords);
}

bool is_english_contraction(Code stem, Code suffix) {
  if (suffix == U"t") return stem.ends_with(U"n");
  if (suffix == U"m") return stem == U"i";
  return suffix == U"s" || suffix == U"d" || suffix == U"ll" || suffix == U"re" || suffix == U"ve";
}

std::u32string lower(Code text) {
  std::u32string out(text);
  for (char32_t& c : out) c = utf8::to_lower(c);
  return out;
}

Code after_hyphen(Code word) {
  const size_t hyphen = word.rfind(U'-');
  return hyphen == Code::npos ? word : word.substr(hyphen + 1);
}

// Cuts normalised text into tokens. Whether an apostrophe at the end of a word closes a quotation depends on
// how many tokens ' went before: a property of the tokens alone, which is what keeps tokenize() idempotent.
class Scanner {
 public:
  Scanner(Code text, Unspaced unspaced) : text_(text), unspaced_(unspaced) {}

  std::vector<WordRange> run() {
    while (at_ < text_.size()) {
      const char32_t c = text_[at_];
      if (c == U' ' || is_joiner(c)) {
        ++at_;
      } else {
        emit(is_unspaced(c) ? scan_unspaced() : starts_word(c) ? scan_word() : scan_symbol());
      }
    }
    return std::move(words_);
  }

 private:
  static bool is_spaced_letter(char32_t c) { return utf8::is_letter(c) && !is_unspaced(c); }

  static bool starts_word(char32_t c) { return utf8::is_letter(c) || utf8::is_number(c) || utf8::is_mark(c); }

  char32_t peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : U' '; }

  void emit(Code token) {
    if (token == U"'") quote_open_ = !quote_open_;
    words_.push_back({at_ - token.size(), at_});
  }

  Code since(size_t start) const { return text_.substr(start, at_ - start); }

  // A character, or all that stand together, with its marks.
  Code scan_unspaced() {
    const size_t start = at_++;
    while (at_ < text_.size() && (utf8::is_mark(text_[at_]) || is_joiner(text_[at_]) ||
                                  (unspaced_ == Unspaced::whole && is_unspaced(text_[at_])))) {
      ++at_;
    }
    return since(start);
  }

  // `p.m.`: single letters with a stop each, at least two.
  bool scan_initials() {
    if (at_ < no_initials_) return false;
    size_t end = at_;
    int letters = 0;
    while (end + 1 < text_.size() && utf8::is_letter(text_[end]) && text_[end + 1] == U'.') {
      end += 2;
      ++letters;
    }
    const bool stops = end == text_.size() || !starts_word(text_[end]);
    if (letters < 2 || !stops || (end < text_.size() && text_[end] == U'.')) {
      no_initials_ = end;
      return false;
    }
    at_ = end;
    return true;
  }

  Code scan_word() {
    const size_t start = at_;
    if (scan_initials()) return since(start);
    while (at_ < text_.size()) {
      const char32_t c = text_[at_];
      if (is_unspaced(c)) break;
      if (starts_word(c) || is_joiner(c)) {
        ++at_;
      } else if (c == U'-') {
        if (!is_spaced_letter(peek(1)) && !utf8::is_number(peek(1))) break;
        ++at_;
      } else if (c == U'.' || c == U',' || c == U':') {
        if (!utf8::is_digit(text_[at_ - 1]) || !utf8::is_digit(peek(1))) break;
        ++at_;
      } else if (c == U'\'') {
        const Apostrophe role = judge_apostrophe(since(start));
        if (role != Apostrophe::apart) ++at_;
        if (role != Apostrophe::inside) break;
      } else {
        break;
      }
    }
    return since(start);
  }

  // What the apostrophe at at_, behind `word`, does: stays inside the word, ends it, or is no part of it.
  enum class Apostrophe { inside, last, apart };

  Apostrophe judge_apostrophe(Code word) const {
    // A word may be as long as a line, with as many apostrophes: what is further back changes nothing, but for
    // a stem that is Latin in its last letters only (rule 4).
    constexpr size_t kLooked = 100;
    const std::u32string folded = lower(word.substr(word.size() - std::min(word.size(), kLooked)));
    const Code stem = after_hyphen(folded);
    const bool letter_before = !stem.empty() && !utf8::is_number(stem.back());
    if (!is_spaced_letter(peek(1))) {
      if (is_elidable(stem)) return Apostrophe::last;
      const bool ends_word = letter_before && !quote_open_ && !utf8::is_number(peek(1));
      return ends_word ? Apostrophe::last : Apostrophe::apart;
    }
    size_t end = at_ + 1;
    while (end < text_.size() && (is_spaced_letter(text_[end]) || utf8::is_mark(text_[end]))) ++end;
    const std::u32string suffix = lower(text_.substr(at_ + 1, end - at_ - 1));
    if (!letter_before) return suffix == U"s" ? Apostrophe::inside : Apostrophe::apart;  // 1990's; 6'tall
    if (stem == U"n" && suffix == U"t") return Apostrophe::inside;
    if (is_elidable(stem)) return Apostrophe::last;
    if (is_english_contraction(stem, suffix) || is_fixed_word(stem, suffix)) return Apostrophe::inside;
    if (!std::all_of(stem.begin(), stem.end(), is_latin)) return Apostrophe::inside;
    // Within quotes `un'` alone would read as a closing quotation mark next time: leave such a word whole.
    return quote_open_ ? Apostrophe::inside : Apostrophe::last;
  }

  // One symbol with the marks and joined symbols that make it up (emoji), or a run of stops or hyphens.
  Code scan_symbol() {
    const size_t start = at_;
    const char32_t first = text_[at_++];
    if (first == U'.' || first == U'-') {
      while (at_ < text_.size() && text_[at_] == first) ++at_;
    }
    if (first == U'\'') return since(start);
    while (at_ < text_.size()) {
      const char32_t c = text_[at_];
      const bool modifier = c >= 0x1F3FB && c <= 0x1F3FF;  // skin tones
      const bool joined = text_[at_ - 1] == kJoiner && !starts_word(c) && c != U' ' && c != U'\'';
      if (!utf8::is_mark(c) && !is_joiner(c) && !modifier && !joined) break;
      ++at_;
    }
    return since(start);
  }

  Code text_;
  Unspaced unspaced_;
  size_t at_ = 0;
  // Where letters with stops end that are no initials: those among them need not be looked at again.
  size_t no_initials_ = 0;
  bool quote_open_ = false;
  std::vector<WordRange> words_;
};

std::u32string normalized_code(std::string_view line, const TokenizerOptions& options) {
  std::u32string out;
  out.reserve(line.size());
  bool ascii = true;
  for (char32_t c : utf8::decode_lossy(utf8::nfc(line))) {
    c = read_as(c, options);
    if (c == 0 || (c == U' ' && (out.empty() || out.back() == U' '))) continue;
    if (options.lowercase) c = utf8::to_lower(c);
    ascii = ascii && c < 0x80;
    out.push_back(c);
  }
  while (!out.empty() && out.back() == U' ') out.pop_back();
  // Dropping and folding may have put a letter beside a mark that composes with it.
  return ascii ? out : utf8::decode_lossy(utf8::nfc(utf8::encode(out)));
}

}  // namespace

bool is_unspaced(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  const bool east_asian = within(0x3005, 0x3007) || within(0x3040, 0x30FF) || within(0x31F0, 0x31FF) ||
                          within(0x3400, 0x9FFF) || within(0xF900, 0xFAFF) || within(0xFF66, 0xFF9D) ||
                          within(0x20000, 0x3FFFF);
  const bool south_east_asian = within(0x0E00, 0x0EFF) || within(0x1000, 0x109F) || within(0x1780, 0x17FF);
  return (east_asian || south_east_asian) && (utf8::is_letter(c) || utf8::is_number(c)) && !utf8::is_digit(c);
}

void ChangedCharacters::add(std::string_view line, const TokenizerOptions& options) {
  const auto harmless = [](char c) { return c >= ' ' && c < 0x7F && c != '`'; };
  if (std::all_of(line.begin(), line.end(), harmless)) return;
  const std::string composed = utf8::nfc(line);
  if (composed != line) ++composed_;
  for (char32_t c : utf8::decode_lossy(composed)) {
    const char32_t read = read_as(c, options);
    if (read != c && utf8::is_space(c)) ++spaces_;
    else if (read != c || c == 0) ++counts_[{c, read}];
  }
}

std::string ChangedCharacters::summary() const {
  constexpr size_t kShown = 5;
  std::vector<std::pair<int64_t, std::string>> kinds;
  int64_t all = 0;
  for (const auto& [change, count] : counts_) {
    const auto [from, to] = change;
    std::string shown = fmt::format("U+{:04X}", static_cast<uint32_t>(from));
    if (!utf8::is_control(from) && !utf8::is_format(from))
      shown += " " + utf8::printable(utf8::encode({&from, 1}));
    kinds.emplace_back(-count, shown + (to ? " as " + utf8::encode({&to, 1}) : " dropped"));
    all += count;
  }
  std::sort(kinds.begin(), kinds.end());
  std::string out;
  if (all > 0)
    out = fmt::format("{} character{} read otherwise than written: ", all, all == 1 ? " is" : "s are");
  for (size_t i = 0; i < kinds.size() && i < kShown; ++i)
    out += fmt::format("{}{} ({})", i ? ", " : "", kinds[i].second, -kinds[i].first);
  if (const size_t more = kinds.size() - std::min(kinds.size(), kShown); more > 0)
    out += fmt::format(" and {} other{}", more, more == 1 ? "" : "s");
  if (spaces_ > 0)
    out += fmt::format("{}{} space{} read as a plain one", out.empty() ? "" : "; ", spaces_,
                       spaces_ == 1 ? " is" : "s are each");
  if (composed_ > 0)
    out += fmt::format("{}{} line{} composed (NFC)", out.empty() ? "" : "; ", composed_,
                       composed_ == 1 ? " is" : "s are");
  return out;
}

std::string normalize(std::string_view line, const TokenizerOptions& options) {
  return utf8::encode(normalized_code(line, options));
}

std::vector<WordRange> word_ranges(Code text, Unspaced unspaced) {
  std::u32string plain(text);
  for (char32_t& c : plain) c = plain_spelling(c);
  return Scanner(plain, unspaced).run();
}

std::vector<std::string> tokenize(std::string_view line, const TokenizerOptions& options) {
  const std::u32string code = normalized_code(line, options);
  std::vector<std::string> out;
  for (const auto& [begin, end] : word_ranges(code))
    out.push_back(utf8::encode(Code(code).substr(begin, end - begin)));
  return out;
}

std::vector<std::string> split_tokens(std::string_view line) {
  std::vector<std::string> out;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) out.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string join_tokens(const std::vector<std::string>& tokens) {
  return fmt::format("{}", fmt::join(tokens, " "));
}

bool is_elision(std::string_view token) {
  if (token.size() < 2 || token.back() != '\'') return false;
  const std::u32string folded = lower(utf8::decode_lossy(token.substr(0, token.size() - 1)));
  const Code stem = after_hyphen(folded);
  if (is_elidable(stem)) return true;
  if (stem.empty() || !utf8::is_letter(stem.back())) return false;
  const bool possessive = stem.ends_with(U"s");
  const bool clipped = stem.size() > 3 && stem.ends_with(U"in");  // goin', nothin'
  return !possessive && !clipped;
}

}  // namespace translator
