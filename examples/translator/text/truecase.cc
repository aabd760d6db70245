#include <translator/text/truecase.h>

#include <common/error.h>
#include <common/utf8.h>
#include <translator/text/sentences.h>
#include <translator/text/tokenizer.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace translator {
namespace {

bool is_upper(char32_t c) { return utf8::to_lower(c) != c; }

std::string lower_case(std::u32string word) {
  for (char32_t& c : word) c = utf8::to_lower(c);
  return utf8::encode(word);
}

// Where the last tag ends of those among the quotes and brackets before the first letter or number.
size_t behind_tags(std::u32string_view text) {
  size_t out = 0;
  for (size_t at = 0; at < text.size() && !utf8::is_letter(text[at]) && !utf8::is_number(text[at]); ++at) {
    if (const size_t length = tag_length(text.substr(at)); length > 0) {
      out = at + length;
      at = out - 1;
    }
  }
  return out;
}

}  // namespace

std::string capitalized(std::string_view text) {
  const std::u32string code = utf8::decode_lossy(text);
  const size_t begin = behind_tags(code);
  return utf8::encode(code.substr(0, begin)) + utf8::capitalize(utf8::encode(code.substr(begin)));
}

size_t first_behind_tags(const std::vector<std::string>& words) {
  std::u32string text;
  std::vector<size_t> begins;
  for (const std::string& word : words) {
    begins.push_back(text.size());
    text += utf8::decode_lossy(word);
  }
  const auto first = std::lower_bound(begins.begin(), begins.end(), behind_tags(text));
  return static_cast<size_t>(first - begins.begin());
}

void Truecaser::count(const std::vector<std::string>& words) {
  bool begun = false;
  for (size_t i = first_behind_tags(words); i < words.size(); ++i) {
    const std::u32string code = utf8::decode_lossy(words[i]);
    if (!utf8::is_letter(code[0])) continue;
    if (!begun) {
      begun = true;
      if (is_upper(code[0])) ++capitals_;
      else if (utf8::to_upper(code[0]) != code[0]) --capitals_;
      continue;
    }
    excess_[lower_case(code)] += is_upper(code[0]) ? 1 : -1;
  }
}

void Truecaser::decide() {
  for (const auto& [word, excess] : excess_)
    if (excess > 0) kept_.insert(word);
  excess_.clear();
}

std::string Truecaser::fold(const std::string& sentence) const {
  std::u32string code = utf8::decode_lossy(sentence);
  const size_t text = behind_tags(code);
  for (const auto& [begin, end] : word_ranges(code, Unspaced::whole)) {
    if (begin < text || !utf8::is_letter(code[begin])) continue;
    const std::u32string word = code.substr(begin, end - begin);
    const bool capitals = std::any_of(word.begin() + 1, word.end(), is_upper);
    if (!capitals && !kept_.contains(lower_case(word))) code[begin] = utf8::to_lower(code[begin]);
    break;
  }
  // Only what capitals at the beginning give back: not behind a digit ("3D Printing"), nor of a letter like İ.
  std::string out = utf8::encode(code);
  return capitalized(out) == sentence ? out : sentence;
}

std::string Truecaser::text() const {
  std::string out;
  for (const std::string& word : kept_) out += word + '\n';
  return out;
}

Truecaser Truecaser::load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path, 0, fmt::format("cannot be opened: {}", std::strerror(errno)));
  Truecaser out;
  std::string line;
  if (in.peek(); in.bad()) throw InputError(path, 0, "cannot be read: is it a directory?");
  in.clear();  // it may be empty
  for (int64_t number = 1; std::getline(in, line); ++number) {
    std::string bad = utf8::describe_invalid_byte(line);
    if (in.eof()) bad = "the file is cut off: its last line does not end";
    if (line.empty()) bad = "the word is empty";
    if (bad.empty() && utf8::printable(line) != line) bad = "the word has a control character in it";
    if (!bad.empty()) throw InputError(path, number, bad);
    out.kept_.insert(line);
  }
  return out;
}

}  // namespace translator
