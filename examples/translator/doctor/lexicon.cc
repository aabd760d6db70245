#include <translator/doctor/lexicon.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

namespace translator::doctor {
namespace {

constexpr int32_t kNone = -1;
constexpr int kIterations = 3;
// What is supposed of a word before it is seen: explained four times of five, with the weight of two
// sightings.
constexpr double kExplained = 0.8, kPrior = 2;

uint64_t key_of(int32_t s, int32_t t) {
  return (static_cast<uint64_t>(s) << 32 | static_cast<uint32_t>(t)) + 1;  // 0: nothing there
}

uint64_t mixed(uint64_t x) {  // splitmix64's last step
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

size_t length_of(const Words& words, size_t i) { return words.begin[i + 1] - words.begin[i]; }

double background(const Words& words, int32_t word) {
  return static_cast<double>(words.counts[static_cast<size_t>(word)]) / static_cast<double>(words.ids.size());
}

}  // namespace

Lexicon::Lexicon(const Words& source, const Words& target, int64_t most)
    : ways_{Way{&source, &target}, Way{&target, &source}} {
  int64_t products = 0;
  for (size_t i = 0; i < source.sentences(); ++i)
    products += static_cast<int64_t>(length_of(source, i) * length_of(target, i));
  every_ = static_cast<size_t>(1 + products / (most + 1));
  collect();
  for (int k = 0; k < kIterations; ++k) iterate();
  links_ = {};
}

int32_t Lexicon::find(int32_t s, int32_t t) const {
  const uint64_t key = key_of(s, t), mask = keys_.size() - 1;
  for (uint64_t at = mixed(key) & mask;; at = (at + 1) & mask) {
    if (keys_[at] == key) return places_[at];
    if (keys_[at] == 0) return kNone;
  }
}

// Pairs of words that stand in two pairs of sentences at least. Those are told from the others by counters
// that some share, so that most of what is seen once never takes a place.
void Lexicon::collect() {
  const Words &source = *ways_[0].given, &target = *ways_[0].explained;
  auto each = [&](auto&& f) {
    for (size_t i = 0; i < source.sentences(); i += every_)
      for (int32_t s : source.of(i))
        for (int32_t t : target.of(i))
          f(s, t, source.counts[static_cast<size_t>(s)] > 1 && target.counts[static_cast<size_t>(t)] > 1);
  };
  size_t products = 0;
  each([&](int32_t, int32_t, bool) { ++products; });
  std::vector<uint8_t> seen(std::bit_ceil(std::max<size_t>(products, 1024)));
  each([&](int32_t s, int32_t t, bool usual) {
    if (!usual) return;
    uint8_t& count = seen[mixed(key_of(s, t)) & (seen.size() - 1)];
    if (count < 2) ++count;
  });
  size_t kept = 0;
  for (uint8_t count : seen) kept += count == 2 ? 1 : 0;
  // Where counters are shared there are more: at a load of a half this still has room.
  auto build = [&](size_t room) {
    keys_.assign(std::bit_ceil(std::max<size_t>(room, 64)), 0);
    places_.assign(keys_.size(), kNone);
    cells_.clear();
    links_.clear();
    links_.reserve(products);
    bool fits = true;
    each([&](int32_t s, int32_t t, bool usual) {
      const uint64_t key = key_of(s, t), hash = mixed(key), mask = keys_.size() - 1;
      if (!fits || !usual || seen[hash & (seen.size() - 1)] < 2) return links_.push_back(kNone);
      uint64_t at = hash & mask;
      while (keys_[at] != 0 && keys_[at] != key) at = (at + 1) & mask;
      if (keys_[at] == 0) {
        keys_[at] = key;
        places_[at] = static_cast<int32_t>(cells_.size());
        cells_.emplace_back();
        fits = cells_.size() * 4 < keys_.size() * 3;
      }
      const int32_t place = places_[at];
      cells_[static_cast<size_t>(place)].count[0] += 1;
      links_.push_back(place);
    });
    return fits;
  };
  for (size_t room = 2 * kept + 64; !build(room); room *= 2) {
  }
  for (Cell& c : cells_) c.count[1] = c.count[0];
  for (Way& way : ways_) {
    way.total.assign(way.given->types.size(), 0);
    way.share.assign(way.explained->types.size(), kExplained);
  }
  size_t link = 0;
  each([&](int32_t s, int32_t t, bool) {
    if (links_[link++] == kNone) return;
    ++ways_[0].total[static_cast<size_t>(s)];
    ++ways_[1].total[static_cast<size_t>(t)];
  });
  // A cell's count is what all its occurrences together are; shares of them are what a word is given.
}

void Lexicon::iterate() {
  const Words &source = *ways_[0].given, &target = *ways_[0].explained;
  for (size_t at = 0; at < keys_.size(); ++at) {
    if (keys_[at] == 0) continue;
    const uint64_t key = keys_[at] - 1;
    const auto s = static_cast<size_t>(key >> 32), t = static_cast<size_t>(key & 0xFFFFFFFF);
    Cell& c = cells_[static_cast<size_t>(places_[at])];
    c.probability = {static_cast<float>(c.count[0] / ways_[0].total[s]),
                     static_cast<float>(c.count[1] / ways_[1].total[t])};
    c.count = {};
  }
  std::array<std::vector<double>, 2> explained;
  for (size_t w = 0; w < 2; ++w) {
    ways_[w].total.assign(ways_[w].total.size(), 0);
    ways_[w].earlier_share = ways_[w].share;
    explained[w].assign(ways_[w].share.size(), 0);
  }
  std::vector<double> by_target, by_source;  // sums over the other side
  size_t link = 0;
  for (size_t i = 0; i < source.sentences(); i += every_) {
    const auto S = source.of(i), T = target.of(i);
    by_target.assign(T.size(), 0);
    by_source.assign(S.size(), 0);
    for (size_t a = 0, at = link; a < S.size(); ++a)
      for (size_t b = 0; b < T.size(); ++b, ++at) {
        if (links_[at] == kNone) continue;
        const Cell& c = cells_[static_cast<size_t>(links_[at])];
        by_target[b] += c.probability[0];
        by_source[a] += c.probability[1];
      }
    // From sums to what a share of a link is to be multiplied with.
    auto factors = [&](size_t w, std::span<const int32_t> words, size_t others, std::vector<double>& sums) {
      for (size_t k = 0; k < words.size(); ++k) {
        const auto word = static_cast<size_t>(words[k]);
        const double l = ways_[w].earlier_share[word], scale = l / static_cast<double>(others);
        const double all = scale * sums[k] + (1 - l) * background(*ways_[w].explained, words[k]);
        explained[w][word] += scale * sums[k] / all;
        sums[k] = scale / all;
      }
    };
    factors(0, T, S.size(), by_target);
    factors(1, S, T.size(), by_source);
    for (size_t a = 0; a < S.size(); ++a)
      for (size_t b = 0; b < T.size(); ++b, ++link) {
        if (links_[link] == kNone) continue;
        Cell& c = cells_[static_cast<size_t>(links_[link])];
        const double forth = c.probability[0] * by_target[b], back = c.probability[1] * by_source[a];
        c.count[0] += static_cast<float>(forth);
        c.count[1] += static_cast<float>(back);
        ways_[0].total[static_cast<size_t>(S[a])] += forth;
        ways_[1].total[static_cast<size_t>(T[b])] += back;
      }
  }
  for (size_t w = 0; w < 2; ++w)
    for (size_t k = 0; k < explained[w].size(); ++k) {
      const auto seen = static_cast<double>(ways_[w].explained->counts[k]) / static_cast<double>(every_);
      ways_[w].share[k] = (explained[w][k] + kPrior * kExplained) / (seen + kPrior);
    }
}

double Lexicon::one_way(size_t w, size_t i, size_t j) const {
  const Way& way = ways_[w];
  const auto given = way.given->of(w == 0 ? i : j), words = way.explained->of(w == 0 ? j : i);
  const bool own = i == j && i % every_ == 0;
  std::vector<const Cell*> row(given.size());
  double out = 0;
  for (int32_t word : words) {
    const auto k = static_cast<size_t>(word);
    if (way.explained->counts[k] < 2) continue;  // nothing else could teach what it comes from
    const double p = background(*way.explained, word), n = static_cast<double>(given.size());
    double before = 0, sum = 0;
    for (size_t a = 0; a < given.size(); ++a) {
      const int32_t place = w == 0 ? find(given[a], word) : find(word, given[a]);
      row[a] = place == kNone ? nullptr : &cells_[static_cast<size_t>(place)];
      if (row[a]) before += row[a]->probability[w];
    }
    const double l = way.earlier_share[k], scale = l / n, all = scale * before + (1 - l) * p;
    double own_share = 0;
    for (size_t a = 0; a < given.size(); ++a) {
      if (!row[a]) continue;
      const double taught = own ? row[a]->probability[w] * scale / all : 0;
      own_share += taught;
      const double count = row[a]->count[w] - taught,
                   total = way.total[static_cast<size_t>(given[a])] - taught;
      if (count > 1e-3 && total > 1e-3) sum += count / total;
    }
    const double seen = static_cast<double>(way.explained->counts[k]) / static_cast<double>(every_);
    const double share =
        own ? std::clamp((way.share[k] * (seen + kPrior) - own_share) / (seen + kPrior - 1), 0.01, 0.99)
            : std::min(way.share[k], 0.99);
    out += std::log(share * sum / n / p + 1 - share);
  }
  return out;
}

double Lexicon::evidence(size_t i, size_t j) const { return (one_way(0, i, j) + one_way(1, i, j)) / 2; }

}  // namespace translator::doctor
