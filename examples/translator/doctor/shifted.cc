#include <translator/doctor/pairing.h>

#include <algorithm>

namespace translator::doctor {
namespace {

constexpr size_t kShortest = 10;            // pairs
constexpr double kEnoughOdds = 25;          // nats in favour of chance, summed over a stretch
constexpr double kOver = 20;                // nats lost since the best end: the stretch ended there
constexpr double kClear = 5;                // nats that a target must win where it belongs
constexpr int64_t kNear = 30, kFar = 2000;  // lines
constexpr size_t kFewLines = 16, kManyLines = 60;
constexpr int64_t kNearest = 5;  // lines
constexpr size_t kPart = 200;    // pairs

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

// The shift that wins most, by way of so many lines of the stretch. 0: none wins.
int64_t best_shift(const Pairing& pairing, const Stretch& stretch, int64_t nearest, int64_t farthest,
                   size_t lines) {
  int64_t best = 0;
  double most = 0;
  for (int64_t shift = nearest; shift <= farthest; ++shift)
    for (int64_t way : {shift, -shift})
      if (const double mean = mean_gain(pairing, stretch, way, lines); mean > most) {
        most = mean;
        best = way;
      }
  return best;
}

// The same of a few lines, if more of them bear it out.
int64_t best_shift(const Pairing& pairing, const Stretch& stretch, int64_t nearest, int64_t farthest) {
  const int64_t best = best_shift(pairing, stretch, nearest, farthest, kFewLines);
  return best != 0 && mean_gain(pairing, stretch, best, kManyLines) > 0 ? best : 0;
}

int64_t shift_of(const Pairing& pairing, const Stretch& stretch) {
  if (const int64_t near = best_shift(pairing, stretch, 1, kNear, kManyLines)) return near;
  const auto farthest = std::min<int64_t>(kFar, static_cast<int64_t>(pairing.size()) - 1);
  return best_shift(pairing, stretch, kNear + 1, farthest);
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

// One block for what several stretches led to.
void add(const ShiftedBlock& block, std::vector<ShiftedBlock>& blocks) {
  for (ShiftedBlock& b : blocks)
    if (b.shift == block.shift && b.first <= block.last && block.first <= b.last) {
      b.first = std::min(b.first, block.first);
      b.last = std::max(b.last, block.last);
      return;
    }
  blocks.push_back(block);
}

bool is_told(const Stretch& stretch, const std::vector<ShiftedBlock>& blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [&](const ShiftedBlock& b) {
    return b.first <= stretch.first && stretch.last <= b.last;
  });
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
    if (is_told(stretch, out)) continue;
    const int64_t shift = shift_of(pairing, stretch);
    if (shift == 0) continue;
    const ShiftedBlock block = exact(pairing, stretch, shift);
    add(block, out);
    // What the shift does not explain of the stretch may have another.
    if (block.first > stretch.first + kShortest) left.push_back({stretch.first, block.first - 1});
    if (block.last + kShortest < stretch.last) left.push_back({block.last + 1, stretch.last});
  }
  // Where half of a file is shifted, its pairs look no worse than the file does: each part tries the nearest.
  for (size_t first = 0; first + kPart <= pairing.size(); first += kPart) {
    const Stretch part{first, first + kPart - 1};
    if (is_told(part, out)) continue;
    if (const int64_t shift = best_shift(pairing, part, 1, kNearest))
      add(exact(pairing, part, shift), out);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

}  // namespace translator::doctor
