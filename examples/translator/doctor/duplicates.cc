#include <translator/doctor/duplicates.h>

#include <fmt/format.h>

#include <unordered_map>

namespace translator::doctor {
namespace {

constexpr size_t kFewest = 5;  // words of a source that can be near another

// Words seen one after the other as one number; the order counts.
uint64_t after(uint64_t before, uint64_t word) {
  return (before ^ word) * 0x9E3779B97F4A7C15ull + (before >> 31);
}

std::vector<uint64_t> word_hashes(const Folded& folded) {
  std::vector<uint64_t> out;
  for (std::u32string_view word : words_in(folded)) out.push_back(hash_of(word));
  return out;
}

// The sentence as it is, and with each of its words left out.
template <class F>
void for_each_variant(const Folded& folded, F&& f) {
  constexpr size_t kLongest = 100;
  const std::vector<uint64_t> words = word_hashes(folded);
  if (words.size() < kFewest || words.size() > kLongest) return;
  for (size_t left_out = 0; left_out <= words.size(); ++left_out) {
    uint64_t hash = 1;
    for (size_t i = 0; i < words.size(); ++i)
      if (i != left_out) hash = after(hash, words[i]);
    if (!f(hash)) return;
  }
}

}  // namespace

void find_duplicates(const FoldedPairs& folded, const std::vector<SentencePair>& pairs,
                     const std::vector<bool>& damaged, Findings& out) {
  std::unordered_map<uint64_t, size_t> first;
  first.reserve(folded.size());
  for (size_t i = 0; i < folded.size(); ++i) {
    if (damaged[i]) continue;  // it goes anyhow, and a good copy of it shall stay
    const auto& [at, is_new] = first.emplace(hash_of(folded.target[i].text, folded.source[i].hash()), i);
    if (is_new || folded.source[i].text.empty()) continue;
    const SentencePair &a = pairs[at->second], &b = pairs[i];
    const bool exact = a.source_text == b.source_text && a.target_text == b.target_text;
    out.push_back({Kind::duplicate, i,
                   fmt::format("{} as line {}", exact ? "the same" : "the same but for case, marks or spaces",
                               a.line)});
  }
}

void find_overlap(const FoldedPairs& folded, const FoldedPairs& held_out,
                  const std::vector<SentencePair>& held_out_pairs, const std::string& name, Findings& out) {
  std::unordered_map<uint64_t, size_t> sources, targets, variants;
  for (size_t i = 0; i < held_out.size(); ++i) {
    if (!held_out.source[i].text.empty()) sources.emplace(held_out.source[i].hash(), i);
    if (!held_out.target[i].text.empty()) targets.emplace(held_out.target[i].hash(), i);
    for_each_variant(held_out.source[i], [&](uint64_t hash) { return variants.emplace(hash, i), true; });
  }
  auto where = [&](const char* what, size_t i) {
    return fmt::format("{} line {} of {}", what, held_out_pairs[i].line, name);
  };
  for (size_t i = 0; i < folded.size(); ++i) {
    const auto s = sources.find(folded.source[i].hash()), t = targets.find(folded.target[i].hash());
    if (s != sources.end() || t != targets.end()) {
      const char* what = t == targets.end()   ? "the source is that of"
                         : s == sources.end() ? "the target is that of"
                                              : "the sides are those of";
      out.push_back({Kind::overlap, i, where(what, s != sources.end() ? s->second : t->second)});
      continue;
    }
    for_each_variant(folded.source[i], [&](uint64_t hash) {
      const auto near = variants.find(hash);
      if (near == variants.end()) return true;
      out.push_back({Kind::near_overlap, i, where("one word away from", near->second)});
      return false;
    });
  }
}

}  // namespace translator::doctor
