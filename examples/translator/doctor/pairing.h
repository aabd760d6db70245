#pragma once

#include <vector>

#include <gradus/parallel.h>
#include <translator/doctor/duplicates.h>
#include <translator/doctor/findings.h>
#include <translator/doctor/lexicon.h>

namespace translator::doctor {

/// Which pairs translate each other, by their words, and by how long they are. What is usual is told from the
/// file: its pairs, and pairs of sentences that chance puts together.
class Pairing {
 public:
  Pairing(const std::vector<SentencePair>& pairs, const FoldedPairs& folded, gradus::ThreadPool& pool);

  size_t size() const { return forth_.size(); }
  /// Evidence that target j translates source i, nats (see Lexicon).
  double evidence(size_t i, size_t j) const { return i == j ? of_pair(i) : lexicon_.evidence(i, j); }
  /// How much likelier the evidence of pair i is among pairs of chance than in this file: a logarithm,
  /// between -4 and 4.
  double odds_of_chance(size_t i) const;

  /// Whether words can tell: not where there are too few pairs, or hardly one that fits.
  bool able() const { return able_; }
  /// Where they cannot, though there are pairs enough: by how many lines the targets of nearly all pairs are
  /// displaced; 0 for none.
  bool hopeless() const { return !able_ && size() >= kEnough; }
  int64_t displacement() const;
  /// No evidence, less than what 97 of 100 chance pairs stay under, and so little as a normal distribution of
  /// the file's width would have once in 700.
  bool is_wrong(size_t i) const { return able_ && of_pair(i) < wrong_below_; }
  /// Whether there is no doubt; of all pairs. Empty where words cannot tell.
  std::vector<bool> plain() const;
  /// How much too short the target is (above 0: the source): 1 is usual, beyond kOddLength there is something
  /// wrong.
  double odd_length(size_t i) const;

  static constexpr double kOddLength = 5.5;

 private:
  static constexpr size_t kEnough = 1000;
  double of_pair(size_t i) const { return (forth_[i] + back_[i]) / 2; }
  void measure_lengths(const FoldedPairs& folded);
  void compare_with_chance();

  Words source_, target_;
  Lexicon lexicon_;
  // evidence of each pair, in both directions
  std::vector<float> forth_, back_;
  // the same in deviations from pairs with as many words to explain
  std::vector<float> forth_z_, back_z_;
  // below 0: the target is short
  std::vector<float> length_z_;
  // of chance, by evidence, see bin_of
  std::vector<float> odds_;
  double first_bin_ = 0;
  double wrong_below_ = 0, plain_above_ = 0;
  bool able_ = false;
};

/// Finds pairs that are wrong, or of odd lengths, but those that are `known` for another reason.
void find_mispaired(const Pairing& pairing, const std::vector<bool>& known, Findings& out);

/// Stretches of ten lines or more whose targets belong to sources some lines further up or down.
std::vector<ShiftedBlock> find_shifted(const Pairing& pairing);

}  // namespace translator::doctor
