#include <translator/doctor/pairing.h>

#include <algorithm>
#include <cmath>

namespace translator::doctor {
namespace {

constexpr size_t kShortest = 10;            // pairs
constexpr double kEnoughOdds = 25;          // nats in favour of chance, summed over a stretch
constexpr double kOver = 20;                // nats lost since the best end: the stretch ended there
constexpr double kClear = 5;                // nats that a target must win where it belongs
constexpr int64_t kNear = 30, kFar = 2000;  // lines
constexpr size_t kFewLines = 16, kManyLines = 60;

struct Stretch {
  size_t first, last;
  size_t size() const { return last - first + 1; }
};

// Stretches whose pairs look like chance, all in all: sums that go down at good pairs and up at bad ones.
std::vector<Stretch> bad_stretches(const Pairing& pairing) {
  std::vector<Stretch> out;
  double sum = 0, best = 0;
  size_t first = 0, last = 0;
  auto close = [&] {
    if (best > kEnoughOdds && last - first + 1 >= kShortest) out.push_back({first, last});
    const bool later = best > 0;
    sum = best = 0;
    return later;
  };
  for (size_t i = 0; i < pairing.size(); ++i) {
    if (sum <= 0) {
      sum = 0;
      first = i;
    }
    sum += pairing.odds_of_chance(i);
    if (sum > best) {
      best = sum;
      last = i;
    }
    if (best > 0 && (sum <= 0 || sum < best - kOver)) {
      const size_t end = last;
      if (close()) i = end;  // what came after the best end may begin another
    }
  }
  close();
  return out;
}

// What pair i wins when it gets another's target, beyond what chance wins now and then; bounded, so that no
// single pair decides.
double gain(const Pairing& pairing, size_t i, int64_t shift) {
  const auto j = static_cast<int64_t>(i) + shift;
  if (j < 0 || j >= static_cast<int64_t>(pairing.size())) return -kOver;
  return std::clamp(pairing.evidence(i, static_cast<size_t>(j)) - pairing.evidence(i, i), -kOver, kOver) -
         kClear;
}

double mean_gain(const Pairing& pairing, const Stretch& stretch, int64_t shift, size_t lines) {
  const size_t step = std::max<size_t>(1, stretch.size() / lines);
  double sum = 0, n = 0;
  for (size_t i = stretch.first; i <= stretch.last; i += step, ++n) sum += gain(pairing, i, shift);
  return sum / n;
}

// 0: none.
int64_t shift_of(const Pairing& pairing, const Stretch& stretch) {
  int64_t best = 0;
  double most = 0;
  auto look = [&](int64_t shift, size_t lines) {
    const double mean = mean_gain(pairing, stretch, shift, lines);
    if (mean <= most) return;
    most = mean;
    best = shift;
  };
  for (int64_t shift = 1; shift <= kNear; ++shift)
    for (int64_t way : {shift, -shift}) look(way, kManyLines);
  if (most > 0) return best;
  const auto far = std::min<int64_t>(kFar, static_cast<int64_t>(pairing.size()) - 1);
  for (int64_t shift = kNear + 1; shift <= far; ++shift)
    for (int64_t way : {shift, -shift}) look(way, kFewLines);
  return most > 0 && mean_gain(pairing, stretch, best, kManyLines) > 0 ? best : 0;
}

// The range in which the shift wins most: within the stretch, and from there on as far as more is won.
ShiftedBlock exact(const Pairing& pairing, const Stretch& stretch, int64_t shift) {
  Stretch best{stretch.first, stretch.first};
  double sum = 0, most = -kOver;
  for (size_t i = stretch.first, begin = i; i <= stretch.last; ++i) {
    if (sum < 0) {
      sum = 0;
      begin = i;
    }
    sum += gain(pairing, i, shift);
    if (sum <= most) continue;
    most = sum;
    best = {begin, i};
  }
  auto end = [&](size_t from, int step) {
    size_t farthest = from;
    double total = 0, top = 0;
    for (auto i = static_cast<int64_t>(from) + step; i >= 0 && i < static_cast<int64_t>(pairing.size());
         i += step) {
      total += gain(pairing, static_cast<size_t>(i), shift);
      if (total > top) {
        top = total;
        farthest = static_cast<size_t>(i);
      }
      if (total < top - 5 * kOver) break;
    }
    return farthest;
  };
  return {end(best.first, -1), end(best.last, 1), shift};
}

}  // namespace

std::vector<ShiftedBlock> find_shifted(const Pairing& pairing) {
  constexpr int kMostSearched = 30;  // stretches: where no near shift explains one, the search takes a while
  std::vector<ShiftedBlock> out;
  if (!pairing.able()) return out;
  std::vector<Stretch> left = bad_stretches(pairing);
  for (int searched = 0; !left.empty() && searched < kMostSearched; ++searched) {
    const Stretch stretch = left.back();
    left.pop_back();
    const int64_t shift = shift_of(pairing, stretch);
    if (shift == 0) continue;
    const ShiftedBlock block = exact(pairing, stretch, shift);
    out.push_back(block);
    // What the shift does not explain of the stretch may have another.
    if (block.first > stretch.first + kShortest) left.push_back({stretch.first, block.first - 1});
    if (block.last + kShortest < stretch.last) left.push_back({block.last + 1, stretch.last});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

}  // namespace translator::doctor
