#include <translator/doctor/examine.h>

#include <common/tell.h>
#include <common/utf8.h>
#include <fmt/format.h>
#include <translator/doctor/contents.h>
#include <translator/doctor/languages.h>
#include <translator/doctor/pairing.h>

#include <algorithm>
#include <array>

namespace translator::doctor {
namespace {

// A side's text as it stands and as NFC has it.
struct Characters {
  std::u32string text;
  bool composed_already = true;

  explicit Characters(const std::string& bytes) : text(utf8::decode_lossy(bytes)) {
    constexpr char32_t kFirstMark = 0x300;  // nothing below changes
    if (std::none_of(text.begin(), text.end(), [](char32_t c) { return c >= kFirstMark; })) return;
    const std::string composed = utf8::nfc(bytes);
    composed_already = composed == bytes;
    if (!composed_already) text = utf8::decode_lossy(composed);
  }
};

bool has_words(const Folded& folded) {
  return std::any_of(folded.text.begin(), folded.text.end(), [](char32_t c) { return c > U' ' && c != U'?'; });
}

// All that a pair tells by itself.
void look_at(const SentencePair& p, size_t i, FoldedPairs& folded, Findings& out) {
  const Characters source(p.source_text), target(p.target_text);
  const Folded &s = folded.source[i] = fold(source.text), &t = folded.target[i] = fold(target.text);
  auto add = [&](Kind kind, std::string detail) {
    if (!detail.empty()) out.push_back({kind, i, std::move(detail)});
  };
  add(Kind::copy, likeness(s, t));
  for (const auto& [side, text] : {std::pair{"source", &source}, std::pair{"target", &target}}) {
    const std::string odd = odd_characters(text->text);
    add(Kind::odd, odd.empty() ? "" : fmt::format("the {} has {}", side, odd));
  }
  if (has_words(s) != has_words(t))
    add(Kind::odd, fmt::format("the {} has no word", has_words(s) ? "target" : "source"));
  add(Kind::odd, repetition(s, t));
  add(Kind::markup, markup_difference(p.source_text, p.target_text));
  add(Kind::numbers, number_difference(source.text, target.text));
  if (!source.composed_already || !target.composed_already)
    add(Kind::normalisation, source.composed_already   ? "the target"
                             : target.composed_already ? "the source"
                                                       : "both sides");
}

void look_at_all(const std::vector<SentencePair>& pairs, gradus::ThreadPool& pool, FoldedPairs& folded,
                 Findings& out) {
  folded.source.resize(pairs.size());
  folded.target.resize(pairs.size());
  const auto threads = static_cast<size_t>(pool.size());
  std::vector<Findings> found(threads);
  pool.run([&](int worker) {
    const auto w = static_cast<size_t>(worker);
    for (size_t i = w * pairs.size() / threads; i < (w + 1) * pairs.size() / threads; ++i)
      look_at(pairs[i], i, folded, found[w]);
  });
  for (Findings& f : found) std::move(f.begin(), f.end(), std::back_inserter(out));
}

// What is unusual depends on what is usual here: capitals where most lines have small letters, a small first
// letter where 95 of 100 lines begin with a capital.
void find_casing(const FoldedPairs& folded, Findings& out) {
  struct Usual {
    int64_t lines = 0, shouting = 0, small = 0, capital = 0;
    bool quiet() const { return 5 * shouting < lines; }
    bool capitalised() const { return capital >= 19 * small; }
  };
  std::array<Usual, 2> usual;
  for (size_t i = 0; i < folded.size(); ++i)
    for (size_t side = 0; side < 2; ++side) {
      const Folded& f = side == 0 ? folded.source[i] : folded.target[i];
      ++usual[side].lines;
      usual[side].shouting += f.shouts();
      usual[side].small += f.begins_small;
      usual[side].capital += f.begins_capital;
    }
  for (size_t i = 0; i < folded.size(); ++i) {
    const Folded &s = folded.source[i], &t = folded.target[i];
    const bool source = s.shouts() && usual[0].quiet(), target = t.shouts() && usual[1].quiet();
    if (source && target)
      out.push_back({Kind::capitals, i, "both sides in capitals"});
    else if (source && t.small > 0)
      out.push_back({Kind::casing, i, "the source is in capitals"});
    else if (target && s.small > 0)
      out.push_back({Kind::casing, i, "the target is in capitals"});
    else if (source || target)
      out.push_back({Kind::capitals, i, source ? "the source is in capitals" : "the target is in capitals"});
    else if (s.begins_small && usual[0].capitalised())
      out.push_back({Kind::capitals, i, "the source begins small"});
    else if (t.begins_small && usual[1].capitalised())
      out.push_back({Kind::capitals, i, "the target begins small"});
  }
}

std::vector<bool> left_out(const Findings& findings, size_t pairs) {
  std::vector<bool> out(pairs);
  for (const Finding& f : findings)
    if (name_of(f.kind).leaves_out) out[f.pair] = true;
  return out;
}

void find_by_words(const std::vector<SentencePair>& pairs, const FoldedPairs& folded,
                   gradus::ThreadPool& pool, Examination& out) {
  const Pairing pairing(pairs, folded, pool);
  out.by_words = pairing.able();
  out.displaced = pairing.displacement();
  out.hopeless = pairing.hopeless() || out.displaced != 0;
  out.blocks = find_shifted(pairing);
  for (const ShiftedBlock& b : out.blocks)
    for (size_t i = b.first; i <= b.last; ++i)
      out.findings.push_back(
          {Kind::shifted, i,
           fmt::format("its target is that of line {}",
                       pairs[static_cast<size_t>(static_cast<int64_t>(i) + b.shift)].line)});
  find_languages(folded, score_languages(folded, pool), pairing.plain(), out.findings);
  find_mispaired(pairing, left_out(out.findings, pairs.size()), out.findings);
}

}  // namespace

std::vector<const Finding*> Examination::reasons(size_t pairs) const {
  std::vector<const Finding*> out(pairs);
  for (const Finding& f : findings)
    if (name_of(f.kind).leaves_out && (!out[f.pair] || f.kind < out[f.pair]->kind)) out[f.pair] = &f;
  return out;
}

Examination examine(const std::vector<SentencePair>& pairs, gradus::ThreadPool& pool,
                    const ExamineOptions& o) {
  auto stage = [&](const char* what) {
    if (o.on_stage) o.on_stage(what);
  };
  Examination out;
  FoldedPairs folded;
  stage("each pair by itself");
  look_at_all(pairs, pool, folded, out.findings);
  find_casing(folded, out.findings);
  for (size_t i = 0; i < pairs.size(); ++i)
    if (too_long(pairs[i], o.max_words)) {
      const size_t words = std::max(pairs[i].source.size(), pairs[i].target.size()),
                   bytes = std::max(pairs[i].source_text.size(), pairs[i].target_text.size());
      out.findings.push_back({Kind::too_long, i,
                              static_cast<int64_t>(words) > o.max_words ? fmt::format("{} words", words)
                                                                        : fmt::format("{} bytes", bytes)});
    }
  stage("duplicates");
  find_duplicates(folded, pairs, left_out(out.findings, pairs.size()), out.findings);
  for (const HeldOut& held : o.held_out) {
    FoldedPairs there;
    Findings ignored;
    look_at_all(held.pairs, pool, there, ignored);
    find_overlap(folded, there, held.pairs, held.name, out.findings);
  }
  stage("languages and words");
  find_scripts(folded, out.findings);
  if (o.quick)
    find_languages(folded, score_languages(folded, pool), {}, out.findings);
  else
    find_by_words(pairs, folded, pool, out);
  std::stable_sort(out.findings.begin(), out.findings.end(), [](const Finding& a, const Finding& b) {
    return std::pair(a.pair, a.kind) < std::pair(b.pair, b.kind);
  });
  // Of one kind one finding.
  out.findings.erase(
      std::unique(out.findings.begin(), out.findings.end(),
                  [](const Finding& a, const Finding& b) { return a.pair == b.pair && a.kind == b.kind; }),
      out.findings.end());
  return out;
}

void warn(const std::vector<SentencePair>& pairs, int threads, bool one_file) {
  constexpr int64_t kFewest = 10;
  constexpr double kShare = 0.005;
  gradus::ThreadPool pool(threads);
  const Examination found = examine(pairs, pool, {.max_words = INT64_MAX, .quick = true});
  std::array<int64_t, kKinds> counts{};
  for (const Finding& f : found.findings) ++counts[static_cast<size_t>(f.kind)];
  bool said = false;
  for (int k = 0; k < kKinds; ++k) {
    const KindName& name = name_of(static_cast<Kind>(k));
    const int64_t count = counts[static_cast<size_t>(k)];
    if (!name.leaves_out || count < kFewest ||
        static_cast<double>(count) < kShare * static_cast<double>(pairs.size()))
      continue;
    tell("{} of {} pairs: {}\n", count, pairs.size(), name.says);
    said = true;
  }
  if (said && one_file) tell("`translator doctor` says which, and --clean leaves them out.\n");
}

}  // namespace translator::doctor
