#pragma once

#include <cstdint>
#include <vector>

#include <gradus/random.h>
#include <translator/model/batches.h>

namespace translator {

/// What a run draws beside dropout: each has random numbers of its own, by epoch or step.
enum class Draws : uint64_t { own_words = 40, pieces = 41, shares = 42, unknown_words = 43 };
gradus::Rng drawn(Draws what, uint64_t seed, int64_t when);

/// Pairs by their numbers, that are trained on together.
using Batch = std::vector<size_t>;

struct EpochOptions {
  /// pairs
  int64_t batch_size = 64;
  /// of both sides, padding and </s> included; 0: batches have batch_size pairs
  int64_t batch_tokens = 0;
  uint64_t seed = 0;
};

/// The pairs of an epoch: each as often as its weight says; of a weight that is no whole number, so many of its
/// pairs once more, drawn anew each epoch, that it comes out right over all.
Batch epoch_pairs(const std::vector<EncodedPair>& pairs, int64_t epoch, uint64_t seed);

/// The batches of an epoch: a function of seed and epoch alone, so that a run that goes on sees the same.
///
/// Sorted by length, pairs of equal lengths shuffled, so that a batch pads little; cut into batches, which are
/// shuffled. By tokens: cut where one more pair would exceed them, so that longer sentences make smaller
/// batches (Vaswani et al. 2017, 5.1); a pair that is longer than that is a batch by itself.
std::vector<Batch> epoch_batches(const std::vector<EncodedPair>& pairs, int64_t epoch,
                                 const EpochOptions& options);

}  // namespace translator
