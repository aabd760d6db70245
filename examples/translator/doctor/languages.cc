#include <translator/doctor/languages.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <translator/doctor/spread.h>

namespace translator::doctor {
namespace {

constexpr int kTableBits = 18;
constexpr double kUnseen = 0.5;
constexpr double kOther = -8;  // nats; triples overlap, so that this is less than it seems
constexpr double kSurelyOther = -40;
constexpr float kUnusual = -3;  // deviations
constexpr double kHardlyOwn = 0.4;  // of what a triple usually says for its own side
constexpr double kRareScript = 0.005;

template <class F>
void for_each_triple(const Folded& folded, F&& f) {
  uint64_t a = U' ', b = U' ';
  auto next = [&](char32_t c) {
    f(static_cast<size_t>((((a * 1000003 + b) * 1000003 + c) * 0x9E3779B97F4A7C15ull) >> (64 - kTableBits)));
    a = b;
    b = c;
  };
  for (char32_t c : folded.text) next(c);
  next(U' ');
}

struct Triples {
  std::vector<int32_t> counts = std::vector<int32_t>(size_t{1} << kTableBits);
  double total = 1;

  // The beginnings of texts: one of a million characters would be the language of a small file.
  void count(const std::vector<Folded>& side) {
    constexpr int64_t kMost = 1000;
    for (const Folded& text : side) {
      int64_t n = 0;
      for_each_triple(text, [&](size_t triple) {
        if (++n > kMost) return;
        ++counts[triple];
        ++total;
      });
    }
  }
};

constexpr uint32_t kAlphabets = 16 + (0x110000 >> 7);

// Letters of one alphabet, roughly: pages of Unicode, those of one script put together.
uint32_t alphabet_of(char32_t c) {
  if (c < 0x250 || (c >= 0x1E00 && c < 0x1F00)) return 0;                                    // Latin
  if ((c >= 0x370 && c < 0x400) || (c >= 0x1F00 && c < 0x2000)) return 1;                    // Greek
  if (c >= 0x400 && c < 0x530) return 2;                                                     // Cyrillic
  if ((c >= 0x590 && c < 0x600) || (c >= 0xFB1D && c < 0xFB50)) return 3;                    // Hebrew
  if ((c >= 0x600 && c < 0x780) || (c >= 0xFB50 && c < 0xFE00)) return 4;                    // Arabic
  if (c >= 0x3040 && c < 0x3100) return 5;                                                   // kana
  if ((c >= 0x3400 && c < 0xA000) || (c >= 0xF900 && c < 0xFB00) || c >= 0x20000) return 6;  // Han
  if ((c >= 0xAC00 && c < 0xD7B0) || (c >= 0x1100 && c < 0x1200) || (c >= 0x3130 && c < 0x3190))
    return 7;                                   // Hangul
  return 16 + (static_cast<uint32_t>(c) >> 7);  // others have 128 characters
}

bool is_word_character(char32_t c) { return c > U' ' && c != U'?' && !(c >= U'0' && c <= U'9'); }

void find_script(const std::vector<Folded>& side, const char* name, Findings& out) {
  std::vector<int64_t> counts(kAlphabets);
  int64_t all = 0;
  for (const Folded& text : side)
    for (char32_t c : text.text)
      if (is_word_character(c)) {
        ++counts[alphabet_of(c)];
        ++all;
      }
  for (size_t i = 0; i < side.size(); ++i) {
    int64_t letters = 0, rare = 0;
    for (char32_t c : side[i].text) {
      if (!is_word_character(c)) continue;
      ++letters;
      rare += static_cast<double>(counts[alphabet_of(c)]) < kRareScript * static_cast<double>(all) ? 1 : 0;
    }
    if (rare >= 2 && 2 * rare > letters)
      out.push_back({Kind::language, i, std::string("the ") + name + " is in another script"});
  }
}

// Each value in deviations from those of texts of like length.
std::vector<float> by_length(const std::vector<Folded>& texts, std::vector<float> values) {
  constexpr size_t kBins = 12, kWide = 8;
  std::array<std::vector<size_t>, kBins> bins;
  for (size_t i = 0; i < texts.size(); ++i)
    bins[std::min(kBins - 1, texts[i].text.size() / kWide)].push_back(i);
  for (const auto& bin : bins) {
    std::vector<float> some;
    for (size_t i : bin) some.push_back(values[i]);
    const Spread spread = spread_of(some);
    for (size_t i : bin) values[i] = static_cast<float>((values[i] - spread.median) / spread.below);
  }
  return values;
}

}  // namespace

LanguageScores score_languages(const FoldedPairs& folded, gradus::ThreadPool& pool) {
  LanguageScores out;
  struct Side {
    const std::vector<Folded>& texts;
    std::vector<float>& own;
    std::vector<bool>& neither;
    Triples triples = {};
  };
  std::array<Side, 2> sides = {Side{folded.source, out.own_source, out.neither_source},
                               Side{folded.target, out.own_target, out.neither_target}};
  auto for_each_side = [&](auto&& f) {
    const auto threads = static_cast<size_t>(pool.size());
    pool.run([&](int worker) {
      for (size_t side = static_cast<size_t>(worker); side < 2; side += threads)
        f(sides[side], sides[1 - side]);
    });
  };
  for_each_side([](Side& side, const Side&) { side.triples.count(side.texts); });
  for_each_side([](Side& side, const Side& other) {
    // What neither side has is as rare on one as on the other.
    const double unseen = kUnseen * 2 / (side.triples.total + other.triples.total);
    std::vector<float> usual, own;  // of each text, a triple's mean
    for (const Folded& text : side.texts) {
      double ratio = 0, mean = 0, n = 0;
      for_each_triple(text, [&](size_t triple) {
        const double here =
            std::log(std::max(0, side.triples.counts[triple] - 1) / side.triples.total + unseen);
        ratio += here - std::log(other.triples.counts[triple] / other.triples.total + unseen);
        mean += here;
        ++n;
      });
      side.own.push_back(static_cast<float>(ratio));
      own.push_back(static_cast<float>(ratio / n));
      usual.push_back(static_cast<float>(mean / n));
    }
    usual = by_length(side.texts, std::move(usual));
    std::vector<float> some = own;
    const double hardly = kHardlyOwn * quantile(some, 0.5);
    for (size_t i = 0; i < usual.size(); ++i)
      side.neither.push_back(usual[i] < kUnusual && own[i] < hardly);
  });
  return out;
}

void find_scripts(const FoldedPairs& folded, Findings& out) {
  find_script(folded.source, "source", out);
  find_script(folded.target, "target", out);
}

void find_languages(const FoldedPairs& folded, const LanguageScores& scores, const std::vector<bool>& plain,
                    Findings& out) {
  constexpr size_t kFewestPairs = 100;  // that tell what a language looks like
  constexpr int64_t kFewest = 10;       // letters that tell a language which neither side is in
  if (folded.size() < kFewestPairs) return;
  for (size_t i = 0; i < folded.size(); ++i) {
    const bool fits = !plain.empty() && plain[i];
    const double s = scores.own_source[i], t = scores.own_target[i];
    auto unusual = [&](const Folded& text, bool neither) {
      return !plain.empty() && !fits && neither && text.letters >= kFewest;
    };
    // Words that stand on both sides for good, names above all, may look foreign on one of them.
    const double foreign = fits ? kSurelyOther : kOther;
    if (s + t < kOther && std::max(s, t) < 0)
      out.push_back({Kind::language, i, "source and target have changed places"});
    else if (t < foreign)
      out.push_back({Kind::language, i, "the target looks like the source's language"});
    else if (s < foreign)
      out.push_back({Kind::language, i, "the source looks like the target's language"});
    else if (unusual(folded.target[i], scores.neither_target[i]))
      out.push_back({Kind::language, i, "the target is unlike the others"});
    else if (unusual(folded.source[i], scores.neither_source[i]))
      out.push_back({Kind::language, i, "the source is unlike the others"});
  }
}

}  // namespace translator::doctor
