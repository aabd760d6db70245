#include <translator/doctor/pairing.h>

#include <translator/doctor/spread.h>

#include <fmt/format.h>
#include <gradus/random.h>

#include <algorithm>
#include <cmath>

namespace translator::doctor {
namespace {

constexpr double kMostOdds = 4, kBins = 160;  // of one nat each
constexpr size_t kFewestPairs = 100;          // pairs that any word can be learnt from

// Each value in deviations from those of as many words: beyond twenty, about as many.
std::vector<float> by_words(const Words& words, const std::vector<float>& values) {
  constexpr size_t kEach = 20, kStep = 5;
  std::vector<std::vector<size_t>> bins(kEach + Words::kLongest / kStep + 1);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t n = words.of(i).size();
    bins[n < kEach ? n : kEach + (n - kEach) / kStep].push_back(i);
  }
  std::vector<float> out(values.size());
  for (const auto& bin : bins) {
    std::vector<float> some;
    for (size_t i : bin) some.push_back(values[i]);
    const Spread spread = spread_of(std::move(some));
    for (size_t i : bin) out[i] = static_cast<float>((values[i] - spread.median) / (spread.below + 0.3));
  }
  return out;
}

// Evidence of pairs that chance puts together.
std::vector<double> by_chance(const Lexicon& lexicon, size_t pairs) {
  constexpr size_t kPairs = 20'000;
  std::vector<double> out;
  gradus::Rng rng(1);
  for (size_t k = 0; k < std::min(kPairs, 4 * pairs); ++k) {
    const auto i = static_cast<size_t>(rng.below(static_cast<int64_t>(pairs)));
    const auto j = static_cast<size_t>(rng.below(static_cast<int64_t>(pairs)));
    if (i != j) out.push_back(lexicon.evidence(i, j));
  }
  return out;
}

// Whether the better half of the pairs stands out from pairs of chance: it does by more than twice the
// distance between usual and best of chance, and by 1 to 1.8 times where pairs are shuffled, as what is
// learnt from them fits them a little.
bool stands_out(std::vector<double> own, std::vector<double> chance) {
  constexpr double kClear = 2.1;
  const double usual = quantile(chance, 0.5), best = quantile(chance, 0.95);
  return quantile(own, 0.75) - usual > kClear * (best - usual);
}

// Some sentences behind one another.
Words window(const Words& words, size_t first, size_t count) {
  Words out;
  out.types = words.types;
  out.counts.resize(words.types.size());
  for (size_t i = first; i < first + count; ++i) {
    for (int32_t word : words.of(i)) {
      out.ids.push_back(word);
      ++out.counts[static_cast<size_t>(word)];
    }
    out.begin.push_back(out.ids.size());
  }
  return out;
}

double length_of(const Folded& folded) { return static_cast<double>(folded.text.size()); }

}  // namespace

Pairing::Pairing(const std::vector<SentencePair>& pairs, const FoldedPairs& folded, gradus::ThreadPool& pool)
    : source_(words_of(pairs, &SentencePair::source)),
      target_(words_of(pairs, &SentencePair::target)),
      lexicon_(source_, target_),
      forth_(pairs.size()),
      back_(pairs.size()) {
  const auto threads = static_cast<size_t>(pool.size());
  pool.run([&](int worker) {
    for (size_t i = static_cast<size_t>(worker); i < size(); i += threads) {
      forth_[i] = static_cast<float>(lexicon_.one_way(0, i, i));
      back_[i] = static_cast<float>(lexicon_.one_way(1, i, i));
    }
  });
  forth_z_ = by_words(target_, forth_);
  back_z_ = by_words(source_, back_);
  measure_lengths(folded);
  compare_with_chance();
}

// Gale and Church 1993 (J93-1004): the deviation of a length grows with the root of the length.
void Pairing::measure_lengths(const FoldedPairs& folded) {
  constexpr double kLeast = 4;  // characters that are neither here nor there
  double source = 1, target = 1;
  for (size_t i = 0; i < size(); ++i) {
    source += length_of(folded.source[i]);
    target += length_of(folded.target[i]);
  }
  const double ratio = target / source;
  for (size_t i = 0; i < size(); ++i) {
    const double expected = ratio * length_of(folded.source[i]), there = length_of(folded.target[i]);
    length_z_.push_back(static_cast<float>((there - expected) / std::sqrt((expected + there) / 2 + kLeast)));
  }
  const Spread spread = spread_of(length_z_);
  const double deviation = (spread.below + spread.above) / 2;
  for (float& z : length_z_) z = static_cast<float>((z - spread.median) / deviation);
}

void Pairing::compare_with_chance() {
  if (size() < kFewestPairs) return;
  std::vector<double> chance = by_chance(lexicon_, size()), own;
  for (size_t i = 0; i < size(); ++i) own.push_back(of_pair(i));
  const Spread spread = spread_of(own);
  const double nearly_all = quantile(chance, 0.97);
  able_ = stands_out(own, chance);
  wrong_below_ = std::min({nearly_all, 0.0, spread.median - 3 * spread.below});
  plain_above_ = std::max({nearly_all, 0.0, spread.median - 2 * spread.below});

  // Shares of bins, smoothed by their neighbours.
  first_bin_ = std::floor(spread.median - kBins / 2);
  auto histogram = [&](const std::vector<double>& values) {
    std::vector<double> bins(static_cast<size_t>(kBins), 0.05);
    for (double v : values)
      for (int d = -1; d <= 1; ++d) {
        const double bin = std::clamp(v - first_bin_ + d, 0.0, kBins - 1);
        bins[static_cast<size_t>(bin)] += (d == 0 ? 0.5 : 0.25);
      }
    for (double& b : bins) b /= static_cast<double>(values.size());
    return bins;
  };
  const auto of_chance = histogram(chance), of_file = histogram(own);
  for (size_t b = 0; b < of_chance.size(); ++b)
    odds_.push_back(
        static_cast<float>(std::clamp(std::log(of_chance[b] / of_file[b]), -kMostOdds, kMostOdds)));
}

double Pairing::odds_of_chance(size_t i) const {
  return odds_[static_cast<size_t>(std::clamp(of_pair(i) - first_bin_, 0.0, kBins - 1))];
}

std::vector<bool> Pairing::plain() const {
  std::vector<bool> out;
  for (size_t i = 0; able_ && i < size(); ++i) out.push_back(of_pair(i) > plain_above_);
  return out;
}

// What is learnt from displaced pairs is learnt from pairs of chance: it is learnt anew from each
// displacement.
int64_t Pairing::displacement() const {
  constexpr size_t kWindow = 10'000, kMost = 5;
  if (able_ || size() < kFewestPairs + 2 * kMost) return 0;
  const size_t count = std::min(kWindow, size() - 2 * kMost), first = (size() - count) / 2;
  const Words source = window(source_, first, count);
  for (int64_t shift = 1; shift <= static_cast<int64_t>(kMost); ++shift)
    for (int64_t way : {shift, -shift}) {
      const Words target = window(target_, static_cast<size_t>(static_cast<int64_t>(first) + way), count);
      const Lexicon lexicon(source, target);
      std::vector<double> own;
      for (size_t i = 0; i < count; ++i) own.push_back(lexicon.evidence(i, i));
      if (stands_out(own, by_chance(lexicon, count))) return way;
    }
  return 0;
}

// Where a side is short, much of what the other side says must have no word on it: both are added up. Only
// beyond kOddLength is a length odd by itself.
double Pairing::odd_length(size_t i) const {
  const double z = length_z_[i], short_by = std::abs(z), unsaid = z < 0 ? -back_z_[i] : -forth_z_[i];
  const double odd = able_ && short_by > 1 && unsaid > 1 ? short_by + unsaid : short_by;
  return z < 0 ? -odd : odd;
}

void find_mispaired(const Pairing& pairing, const std::vector<bool>& known, Findings& out) {
  for (size_t i = 0; i < pairing.size(); ++i) {
    if (known[i]) continue;
    const double odd = pairing.odd_length(i);
    if (std::abs(odd) > Pairing::kOddLength)
      out.push_back({Kind::length, i, odd < 0 ? "the target is too short" : "the source is too short"});
    else if (pairing.is_wrong(i))
      out.push_back({Kind::pairing, i, fmt::format("evidence of words {:.1f}", pairing.evidence(i, i))});
  }
}

}  // namespace translator::doctor
