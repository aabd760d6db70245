#include <translator/doctor/words.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace translator::doctor {
namespace {

std::string_view first_characters(std::string_view word, size_t count) {
  size_t at = 0;
  for (size_t seen = 0; at < word.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(word[at]) & 0xC0) != 0x80;  // not within a character
    if (begins && seen++ == count) break;
  }
  return word.substr(0, at);
}

struct Hash : std::hash<std::string_view> {
  using is_transparent = void;
};

}  // namespace

Words words_of(const std::vector<SentencePair>& pairs, std::vector<std::string> SentencePair::*words) {
  Words out;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> numbers;
  for (const SentencePair& p : pairs) {
    const std::vector<std::string>& all = p.*words;
    for (size_t i = 0; i < std::min(all.size(), Words::kLongest); ++i) {
      const std::string_view word = first_characters(all[i], Words::kLength);
      auto at = numbers.find(word);
      if (at == numbers.end()) {
        at = numbers.emplace(word, static_cast<int32_t>(out.types.size())).first;
        out.types.emplace_back(word);
        out.counts.push_back(0);
      }
      ++out.counts[static_cast<size_t>(at->second)];
      out.ids.push_back(at->second);
    }
    out.begin.push_back(out.ids.size());
  }
  return out;
}

}  // namespace translator::doctor
