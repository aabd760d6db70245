#include <translator/doctor/aligner.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>

namespace translator::doctor {
namespace {

using Ids = std::vector<int32_t>;

constexpr int32_t kNoWord = 0;  // the word that those come from which come from no word
constexpr int kIterated = 5;
constexpr size_t kWordsLinked =
    200;  // words of a sentence that are looked at: time and memory grow with their square
constexpr double kFromNone = 0.08, kTension = 4, kDirichlet = 0.01;

// The words of one side as numbers from 1.
struct Numbered {
  std::vector<Ids> sentences;
  int32_t words = 1;
};
Numbered numbered(const std::vector<SentencePair>& pairs, std::vector<std::string> SentencePair::*side) {
  Numbered out;
  std::unordered_map<std::string_view, int32_t> numbers;
  for (const SentencePair& p : pairs) {
    Ids& ids = out.sentences.emplace_back();
    for (size_t i = 0; i < std::min((p.*side).size(), kWordsLinked); ++i) {
      const auto [at, fresh] = numbers.emplace((p.*side)[i], out.words);
      if (fresh) ++out.words;
      ids.push_back(at->second);
    }
  }
  return out;
}

// The derivative of log gamma: recurrence up to 7, then the asymptotic series (Abramowitz and Stegun 6.3.18).
double digamma(double x) {
  double out = 0;
  for (; x < 7; ++x) out -= 1 / x;
  const double r = 1 / (x * x);
  return out + std::log(x) - 0.5 / x - r * (1.0 / 12 - r * (1.0 / 120 - r / 252));
}

// One direction: `given` words explain the others.
class OneWay {
 public:
  OneWay(const Numbered& given, const Numbered& explained, size_t every, const std::function<void()>& on_pass)
      : given_(given), explained_(explained) {
    collect(every);
    on_pass();
    for (int k = 0; k < kIterated; ++k) {
      iterate(every);
      on_pass();
    }
  }

  // Of each explained word of pair i the given word that it comes from, -1 for none.
  Ids best(size_t i) const {
    const Ids &from = given_.sentences[i], &words = explained_.sentences[i];
    Ids out;
    const double* prior = priors(words.size(), from.size());
    for (size_t b = 0; b < words.size(); ++b, prior += from.size()) {
      double most = kFromNone * theta(kNoWord, words[b]);
      out.push_back(-1);
      for (size_t a = 0; a < from.size(); ++a) {
        const double p = prior[a] * theta(from[a], words[b]);
        if (p > most) {
          most = p;
          out.back() = static_cast<int32_t>(a);
        }
      }
    }
    return out;
  }

 private:
  // [m, n]: of each of m words that it comes from each of n.
  const double* priors(size_t m, size_t n) const {
    std::vector<double>& all = priors_[{m, n}];
    if (all.empty())
      for (size_t i = 0; i < m; ++i) {
        double z = 0;
        for (size_t j = 0; j < n; ++j) {
          const double here = (static_cast<double>(i) + 0.5) / static_cast<double>(m),
                       there = (static_cast<double>(j) + 0.5) / static_cast<double>(n);
          all.push_back(std::exp(-kTension * std::abs(here - there)));
          z += all.back();
        }
        for (size_t j = 0; j < n; ++j) all[i * n + j] *= (1 - kFromNone) / z;
      }
    return all.data();
  }

  // Where theta(word | from) stands; -1: they never stand in one pair.
  int64_t find(int32_t from, int32_t word) const {
    const auto begin = words_.begin() + begin_[static_cast<size_t>(from)],
               end = words_.begin() + begin_[static_cast<size_t>(from) + 1],
               at = std::lower_bound(begin, end, word);
    return at != end && *at == word ? at - words_.begin() : -1;
  }
  double theta(int32_t from, int32_t word) const {
    const int64_t at = find(from, word);
    return at < 0 ? 0 : static_cast<double>(theta_[static_cast<size_t>(at)]);
  }

  // Which words stand in one pair: for each given word those that it could explain, sorted.
  void collect(size_t every) {
    std::vector<int64_t> room(static_cast<size_t>(given_.words) + 1, 0);
    auto each = [&](auto&& f) {
      for (size_t i = 0; i < given_.sentences.size(); i += every) {
        f(kNoWord, explained_.sentences[i]);
        for (int32_t from : given_.sentences[i]) f(from, explained_.sentences[i]);
      }
    };
    each([&](int32_t from, const Ids& words) {
      room[static_cast<size_t>(from) + 1] += static_cast<int64_t>(words.size());
    });
    std::partial_sum(room.begin(), room.end(), room.begin());
    Ids all(static_cast<size_t>(room.back()));
    std::vector<int64_t> end(room.begin(), room.end() - 1);
    each([&](int32_t from, const Ids& words) {
      int64_t& at = end[static_cast<size_t>(from)];
      at = std::copy(words.begin(), words.end(), all.begin() + at) - all.begin();
    });
    begin_ = {0};
    for (size_t from = 0; from + 1 < room.size(); ++from) {
      const auto begin = all.begin() + room[from], behind = all.begin() + room[from + 1];
      std::sort(begin, behind);
      words_.insert(words_.end(), begin, std::unique(begin, behind));
      begin_.push_back(static_cast<int64_t>(words_.size()));
    }
    theta_.assign(words_.size(), 1);
    for (size_t from = 0; from + 1 < begin_.size(); ++from)
      std::fill(theta_.begin() + begin_[from], theta_.begin() + begin_[from + 1],
                1 / static_cast<float>(std::max<int64_t>(1, begin_[from + 1] - begin_[from])));
    for (size_t i = 0; i < given_.sentences.size(); i += every)
      for (int32_t word : explained_.sentences[i]) {
        for (int32_t from : given_.sentences[i]) places_.push_back(static_cast<uint32_t>(find(from, word)));
        places_.push_back(static_cast<uint32_t>(find(kNoWord, word)));
      }
  }

  void iterate(size_t every) {
    std::vector<float> counts(words_.size(), 0);
    std::vector<double> share;
    size_t place = 0;
    for (size_t i = 0; i < given_.sentences.size(); i += every) {
      const size_t m = explained_.sentences[i].size(), n = given_.sentences[i].size();
      const double* prior = priors(m, n);
      for (size_t b = 0; b < m; ++b, prior += n) {
        share.assign(prior, prior + n);
        share.push_back(kFromNone);
        double sum = 0;
        for (size_t a = 0; a <= n; ++a) sum += share[a] *= static_cast<double>(theta_[places_[place + a]]);
        for (size_t a = 0; a <= n; ++a) counts[places_[place + a]] += static_cast<float>(share[a] / sum);
        place += n + 1;
      }
    }
    for (size_t row = 0; row + 1 < begin_.size(); ++row) {
      double total = 0;
      for (auto at = begin_[row]; at < begin_[row + 1]; ++at)
        total += static_cast<double>(counts[static_cast<size_t>(at)]) + kDirichlet;
      for (auto at = static_cast<size_t>(begin_[row]); at < static_cast<size_t>(begin_[row + 1]); ++at)
        theta_[at] = static_cast<float>(
            std::exp(digamma(static_cast<double>(counts[at]) + kDirichlet) - digamma(total)));
    }
  }

  const Numbered &given_, &explained_;
  std::vector<int64_t> begin_;  // of each given word's row, and the end
  Ids words_;
  std::vector<float> theta_;
  // Of each word that is learnt from, where theta stands of each given word of its pair, and of none.
  std::vector<uint32_t> places_;
  mutable std::map<std::pair<size_t, size_t>, std::vector<double>> priors_;  // by m and n
};

}  // namespace

std::vector<Links> align_words(const std::vector<SentencePair>& pairs, gradus::ThreadPool& pool,
                               const AlignerOptions& o) {
  const Numbered source = numbered(pairs, &SentencePair::source),
                 target = numbered(pairs, &SentencePair::target);
  int64_t products = 0;
  for (size_t i = 0; i < pairs.size(); ++i)
    products += static_cast<int64_t>(source.sentences[i].size() * target.sentences[i].size());
  const auto every = static_cast<size_t>(1 + products / (o.most + 1));
  const double kPasses = (1 + kIterated + 1) * (pool.size() == 1 ? 2 : 1);
  double passes = 0;
  std::array<std::vector<Ids>, 2> found;  // forth and back
  pool.run([&](int worker) {
    for (size_t way = static_cast<size_t>(worker); way < 2; way += static_cast<size_t>(pool.size())) {
      auto on_pass = [&] {  // the caller tells of its own share
        if (worker == 0 && o.on_progress) o.on_progress(++passes / kPasses);
      };
      const OneWay learnt(way == 0 ? source : target, way == 0 ? target : source, every, on_pass);
      for (size_t i = 0; i < pairs.size(); ++i) found[way].push_back(learnt.best(i));
      on_pass();
    }
  });
  std::vector<Links> out(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto &forth = found[0][i], &back = found[1][i];
    for (size_t b = 0; b < forth.size(); ++b)
      if (forth[b] >= 0) out[i].push_back({forth[b], static_cast<int32_t>(b)});
    for (size_t a = 0; a < back.size(); ++a)
      if (back[a] >= 0) out[i].push_back({static_cast<int32_t>(a), back[a]});
    std::sort(out[i].begin(), out[i].end());
    out[i].erase(std::unique(out[i].begin(), out[i].end()), out[i].end());
  }
  return out;
}

}  // namespace translator::doctor
