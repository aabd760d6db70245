#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <gradus/random.h>

namespace gradus::nn {

/// What words are drawn from: p = softmax(logits / temperature), of which each of the three cuts, in this
/// order, leaves some words; what is left is divided by its sum. The most probable word always stays.
struct Sampling {
  /// Below 1 nearer to the most probable word, above 1 nearer to chance
  double temperature = 1;
  /// So many most probable words (Fan et al. 2018, 1805.04833); 0: all
  int64_t top_k = 0;
  /// The fewest most probable words that have so much of the probability left by top_k (Holtzman et al. 2020,
  /// 1904.09751); 1: all.
  double top_p = 1;
  /// Words that are at least so many times as probable as the most probable one (Nguyen et al. 2024,
  /// 2407.01082); 0: all.
  double min_p = 0;

  /// @throws Error "[translate] sampling.temperature must be above 0: 0" and the like.
  void check() const;
};

/// best: the `wanted` words of the largest logits [V] that are not in `never`, largest first; of equal ones the
/// first. Fewer where there are not so many.
void best_words(const float* logits, int64_t V, int64_t wanted, const std::vector<int32_t>& never,
                std::vector<int32_t>& best);

/// Draws words, one a call, without allocating after the first.
class Sampler {
 public:
  /// A word by its logits [V] that is not in `never`; -1: there is none. Of equally probable words top_k and
  /// top_p keep the first. One number is drawn from `rng` in each call.
  int32_t draw(const Sampling& sampling, const float* logits, int64_t V, const std::vector<int32_t>& never,
               Rng& rng);

 private:
  std::vector<std::pair<double, int32_t>> words_;  // what may be drawn: weight, id
};

}  // namespace gradus::nn
