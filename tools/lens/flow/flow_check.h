#pragma once

// Internal to tools/lens/flow: what recurrent networks and Transformers are measured with, and lengths of
// gradients beside finite differences, many moved states at once, each in a column of one batch.

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "flow.h"

namespace lens {

/// What was measured on pairs of sentences, one after the other, and checked.
struct Measured {
  /// whose words the lengths are by; of random words, nullptr
  const Subject* by_word = nullptr;
  std::vector<Flow> with = {}, without = {};
  FlowChecks checks = {};

  Flow lengths(const FlowGradients& gradients) const;
  /// `about`, with what was measured, and where.
  FlowResult result(FlowResult about) const;
};

/// Words, and </s>.
std::vector<int32_t> with_end(std::vector<int32_t> words);
/// Of words of a vocabulary, none of its special ones, and </s>, which counts.
std::vector<int32_t> random_sentence(int64_t length, int64_t vocabulary, gradus::Rng& rng);
/// How many words of a setting are checked.
size_t words_to_check(const FlowAsked& asked, int seed, size_t length);

/// What sees the moved state: everything after it, or one way only; of a Transformer, too, the encoder whose
/// word is moved.
enum class Seen { everywhere, value, score, recurrent, encoder };

/// A difference of one step.
struct Tried {
  double step, slope = 0, doubt = HUGE_VAL;
};

/// A length, and what differences along its gradient say.
struct Item {
  size_t word;
  Seen seen;
  /// -1: the whole target
  int64_t step;
  /// of length 1
  std::vector<double> direction;
  double engine, loss;
  Tried taken = {0};
  /// how far apart the neighbours are
  double least = 0;
  std::vector<Tried> tried = {};
  double floor() const;
  bool sure(bool kinks) const;
  void choose();
};
/// Of the gradients [S, D] at all words.
Item item_of(const gradus::Tensor& rows, size_t word, Seen seen, int64_t step, double loss);

/// One of a batch: a state moved along the direction of its item.
struct Column {
  const Item* item;
  double by;
};

/// L_t of each column, [columns][T].
using ColumnLosses = std::function<std::vector<std::vector<double>>(const std::vector<Column>&)>;
/// Compares all items. `kinks`: the network has relus.
FlowChecks check_items(std::vector<Item>& items, bool kinks, const ColumnLosses& losses);

}  // namespace lens
