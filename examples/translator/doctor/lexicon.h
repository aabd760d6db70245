#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <translator/doctor/words.h>

namespace translator::doctor {

/// Which words translate which, learnt from the pairs themselves: IBM model 1 (Brown et al. 1993, J93-2003)
/// in both directions, with a background for the words which nothing explains, some words more often than
/// others:
///
///   p(t | S) = l_t sum_s q(t | s) / |S| + (1 - l_t) p(t)
///
/// A pair is judged by log p(t | S) / p(t) over its words, nats: the evidence that the target belongs to the
/// source. What a pair itself has taught is left out (its own expected counts are subtracted), so that a
/// wrong pair of rare words does not explain itself. Words, and pairs of words, that are seen once can then
/// tell nothing, and take no room.
class Lexicon {
 public:
  /// @param most Products of lengths, summed, that are learnt from; of a longer text it takes every
  ///   so-many-th pair, so that time and memory have an end.
  Lexicon(const Words& source, const Words& target, int64_t most = 24'000'000);

  /// Evidence that sentence j of the targets translates sentence i of the sources: the mean of both
  /// directions.
  double evidence(size_t i, size_t j) const;

  double one_way(size_t way, size_t i, size_t j) const;
  size_t entries() const { return cells_.size(); }

 private:
  // Of a source word and a target word; [0] of the target word given the source word, [1] the other way
  // round.
  struct Cell {
    std::array<float, 2> probability = {};  // q, before the last iteration
    std::array<float, 2> count = {};        // expected, of the last iteration
  };
  // One direction: words are given, and others explained by them.
  struct Way {
    const Words *given, *explained;
    std::vector<double> total = {};          // expected counts out of each given word
    std::vector<double> share = {};          // l of each explained word
    std::vector<double> earlier_share = {};  // l that `count` came from
  };

  int32_t find(int32_t s, int32_t t) const;
  void collect();
  void iterate();

  std::array<Way, 2> ways_;
  // which pairs are learnt from
  size_t every_ = 1;
  // A table with open addressing: source and target word, and where their cell is.
  std::vector<uint64_t> keys_;
  std::vector<int32_t> places_;
  std::vector<Cell> cells_;
  // of all pairs learnt from, cells by source word, then target word
  std::vector<int32_t> links_;
};

}  // namespace translator::doctor
