#include <translator/text/vocabulary.h>

#include <common/error.h>
#include <common/utf8.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace translator {
namespace {

constexpr std::array<std::string_view, Vocabulary::kSpecials> kSpellings = {"<unk>", "<pad>", "<s>", "</s>"};

bool is_special(std::string_view token) {
  return std::find(kSpellings.begin(), kSpellings.end(), token) != kSpellings.end();
}

// What keeps a token from being one line of a file, and a word; empty when nothing does. The tokenizer leaves
// no control character in a word: one in a vocabulary is there to act on the terminal that translations are
// shown on.
std::string fault_of(std::string_view token) {
  if (token.empty()) return "the token is empty";
  if (token.find_first_of("\r\n") != std::string_view::npos) return "the token has a line break in it";
  if (std::string bad = utf8::describe_invalid_byte(token); !bad.empty()) return bad;
  const std::u32string code = utf8::decode(token);
  const auto found = std::find_if(code.begin(), code.end(), utf8::is_unprintable);
  if (found == code.end()) return "";
  return fmt::format("the token has the control character U+{:04X} in it", static_cast<uint32_t>(*found));
}

}  // namespace

Vocabulary::Vocabulary() {
  for (std::string_view spelling : kSpellings) tokens_.emplace_back(spelling);
}

void Vocabulary::append(std::string token) {
  ids_.emplace(token, static_cast<int32_t>(tokens_.size()));
  tokens_.push_back(std::move(token));
}

Vocabulary Vocabulary::build(const TokenCounts& counts, const VocabularyOptions& options) {
  if (options.max_size != 0 && options.max_size < kSpecials) {
    throw std::invalid_argument(fmt::format("Vocabulary::build: max_size {} has no room for the {} specials",
                                            options.max_size, int{kSpecials}));
  }
  std::vector<std::pair<std::string, int64_t>> kept;
  for (const auto& [token, count] : counts.all()) {
    if (const std::string fault = fault_of(token); !fault.empty()) {
      throw std::invalid_argument("Vocabulary::build: " + fault);
    }
    if (count >= options.min_count && !is_special(token)) kept.emplace_back(token, count);
  }
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (options.max_size != 0) {
    kept.resize(std::min(kept.size(), static_cast<size_t>(options.max_size - kSpecials)));
  }
  Vocabulary out;
  for (auto& [token, count] : kept) out.append(std::move(token));
  return out;
}

bool Vocabulary::is_tag(std::string_view token) {
  constexpr size_t kLongest = 40;
  const bool framed =
      token.size() >= 3 && token.size() <= kLongest && token.front() == '<' && token.back() == '>';
  if (!framed || is_special(token) || token.starts_with("<0x") || !fault_of(token).empty()) return false;
  const std::u32string inside = utf8::decode(token.substr(1, token.size() - 2));
  return std::all_of(inside.begin(), inside.end(), [](char32_t c) {
    return utf8::is_letter(c) || utf8::is_mark(c) || utf8::is_number(c) || c == U'-' || c == U'_';
  });
}

bool Vocabulary::is_with_tags(const Vocabulary& others) const {
  const auto rest = tokens_.begin() + std::min(others.size(), size());
  return others.size() <= size() && std::equal(tokens_.begin(), rest, others.tokens_.begin()) &&
         std::all_of(rest, tokens_.end(), is_tag);
}

Vocabulary Vocabulary::extended(const Vocabulary& others) const {
  Vocabulary out = *this;
  for (const std::string& token : others.tokens_)
    if (!is_special(token) && !contains(token)) out.append(token);
  return out;
}

Vocabulary Vocabulary::load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path, 0, fmt::format("cannot be opened: {}", std::strerror(errno)));
  return load(in, path);
}

Vocabulary Vocabulary::load(std::istream& in, const std::string& name) {
  Vocabulary out;
  std::string line;
  int64_t number = 0;
  while (std::getline(in, line)) {
    ++number;
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (number <= kSpecials) {
      const std::string_view expected = kSpellings[static_cast<size_t>(number - 1)];
      if (line != expected) {
        throw InputError(
            name, number,
            fmt::format("expected the special token {}, found \"{}\"", expected, utf8::printable(line)));
      }
      continue;
    }
    if (const std::string fault = fault_of(line); !fault.empty()) throw InputError(name, number, fault);
    if (out.contains(line) || is_special(line)) {
      const auto first = std::find(out.tokens_.begin(), out.tokens_.end(), line) - out.tokens_.begin();
      throw InputError(
          name, number,
          fmt::format("the token \"{}\" is on line {} already", utf8::printable(line), first + 1));
    }
    out.append(std::move(line));
  }
  if (in.bad()) throw InputError(name, number, "cannot be read");
  if (number < kSpecials) {
    throw InputError(name, number + 1,
                     fmt::format("expected the special token {}, found the end of the file",
                                 kSpellings[static_cast<size_t>(number)]));
  }
  return out;
}

std::string Vocabulary::text() const {
  std::string out;
  for (const std::string& token : tokens_) out += token + '\n';
  return out;
}

int32_t Vocabulary::id(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? kUnknown : found->second;
}

const std::string& Vocabulary::token(int32_t id) const {
  if (id < 0 || id >= size()) {
    throw std::out_of_range(fmt::format("Vocabulary::token: no id {} among {} entries", id, size()));
  }
  return tokens_[static_cast<size_t>(id)];
}

std::vector<int32_t> Vocabulary::encode(const std::vector<std::string>& tokens) const {
  std::vector<int32_t> out;
  out.reserve(tokens.size());
  for (const std::string& token : tokens) out.push_back(id(token));
  return out;
}

std::vector<std::string> Vocabulary::decode(const std::vector<int32_t>& ids) const {
  std::vector<std::string> out;
  for (int32_t id : ids) {
    if (id == kEnd) break;
    if (id != kBegin && id != kPadding) out.push_back(token(id));
  }
  return out;
}

}  // namespace translator
