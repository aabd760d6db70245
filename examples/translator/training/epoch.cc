#include <translator/training/epoch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace translator {
namespace {

template <class T>
void shuffle(std::vector<T>& v, gradus::Rng& rng) {
  for (size_t i = v.size(); i > 1; --i)
    std::swap(v[i - 1], v[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
}

// Pairs sorted by length, in batches.
std::vector<Batch> cut(const std::vector<EncodedPair>& pairs, const Batch& sorted, const EpochOptions& o) {
  std::vector<Batch> batches;
  size_t source = 0, target = 0;  // the longest of the batch
  Batch batch;
  for (size_t i : sorted) {
    source = std::max(source, pairs[i].source.size());
    target = std::max(target, pairs[i].target.size() + 1);
    const size_t size = batch.size() + 1;
    const bool fits = o.batch_tokens > 0 ? size * (source + target) <= static_cast<size_t>(o.batch_tokens)
                                         : size <= static_cast<size_t>(o.batch_size);
    if (!fits && !batch.empty()) {
      batches.push_back(std::move(batch));
      batch.clear();
      source = pairs[i].source.size();
      target = pairs[i].target.size() + 1;
    }
    batch.push_back(i);
  }
  if (!batch.empty()) batches.push_back(std::move(batch));
  return batches;
}

}  // namespace

gradus::Rng drawn(Draws what, uint64_t seed, int64_t when) {
  return gradus::Rng(seed, static_cast<uint64_t>(when) + (uint64_t{1} << static_cast<uint64_t>(what)));
}

Batch epoch_pairs(const std::vector<EncodedPair>& pairs, int64_t epoch, uint64_t seed) {
  Batch out;
  std::map<double, Batch> in_part;  // by weight
  for (size_t i = 0; i < pairs.size(); ++i) {
    const double whole = std::floor(pairs[i].weight);
    out.insert(out.end(), static_cast<size_t>(whole), i);
    if (pairs[i].weight > whole) in_part[pairs[i].weight].push_back(i);
  }
  gradus::Rng rng = drawn(Draws::shares, seed, epoch);
  for (auto& [weight, some] : in_part) {
    const double share = weight - std::floor(weight), count = share * static_cast<double>(some.size());
    shuffle(some, rng);
    some.resize(std::max<size_t>(1, static_cast<size_t>(std::llround(count))));
    out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

std::vector<Batch> epoch_batches(const std::vector<EncodedPair>& pairs, int64_t epoch,
                                 const EpochOptions& o) {
  gradus::Rng rng(o.seed, static_cast<uint64_t>(epoch) + 1000);
  Batch order = epoch_pairs(pairs, epoch, o.seed);
  shuffle(order, rng);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(pairs[a].target.size(), pairs[a].source.size()) <
           std::pair(pairs[b].target.size(), pairs[b].source.size());
  });
  std::vector<Batch> batches = cut(pairs, order, o);
  shuffle(batches, rng);
  return batches;
}

}  // namespace translator
