#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace translator {

/// What a metric counts of a sentence; that of a corpus is their sum.
using Counts = std::vector<int64_t>;

/// A score of translations, in percent, that follows from counts which add up over sentences: what stands here
/// of one holds for all (intervals, tests, parts of a corpus).
struct Metric {
  /// sacreBLEU's: BLEU, chrF2, chrF2++
  std::string name;
  /// what its signature has of its own: case:mixed|eff:no|tok:13a|smooth:exp
  std::string settings;
  /// Of a sentence and its references, one or more. As many numbers for every sentence.
  std::function<Counts(const std::string& hypothesis, const std::vector<std::string>& references)> count;
  std::function<double(const Counts& sum)> score;
  /// What is printed behind the score; may lack.
  std::function<std::string(const Counts& sum)> details = {};
  /// The score of each text with each as its reference, [texts, texts]; may lack where nobody asks.
  std::function<std::vector<double>(const std::vector<std::string>& texts)> pairwise = {};
};

/// BLEU, chrF2 and chrF++ with sacreBLEU's defaults but for the case.
std::vector<Metric> usual_metrics(bool lowercase);

/// The counts of each sentence of a corpus, one behind the other.
struct CorpusCounts {
  /// numbers of a sentence
  size_t width = 0;
  /// [sentences, width]
  std::vector<int64_t> counts;
  /// of each sentence; 0 where their number varies
  int64_t references = 0;

  size_t sentences() const { return width ? counts.size() / width : 0; }
  Counts sum() const;
  /// Those of some sentences.
  CorpusCounts some(const std::vector<size_t>& chosen) const;
};

/// `references[i]` are the translations, one or more, of the sentence that `hypotheses[i]` translates.
/// Throws std::invalid_argument when the numbers differ, or a sentence has no reference.
CorpusCounts count(const Metric& metric, const std::vector<std::string>& hypotheses,
                   const std::vector<std::vector<std::string>>& references);

/// How often a bootstrap draws, and from which seed: sacreBLEU's defaults. What is drawn is not the same as
/// there, where NumPy draws.
struct Resampling {
  int64_t resamples = 1000;
  uint64_t seed = 12345;
};

/// The scores of corpora that are drawn from the sentences of one, with replacement, as many as it has (Koehn
/// 2004, W04-3250). The same seed draws the same sentences for every metric and system, which pairs them.
std::vector<double> resampled_scores(const Metric& metric, const CorpusCounts& corpus,
                                     const Resampling& how = {});

/// The mean of resampled scores, and half the width of what 95 % of them lie in.
struct Interval {
  double mean = 0, half_width = 0;
};
Interval interval_of(std::vector<double> scores);

/// A score with all that is said of it.
struct Score {
  std::string name;
  /// percent
  double value = 0;
  /// none for a score of 0, as in sacreBLEU
  std::optional<Interval> interval;
  std::string details, signature;

  /// its name in JSON: bleu, chrf2, chrf2++
  std::string key() const;
  /// `56.88 (μ = 56.80 ± 3.21) 77.4/69.2/57.1/38.9 (BP = 0.968 ...)`: sacreBLEU's line.
  std::string format() const;
};

/// With an interval where `how` is given.
Score score_of(const Metric& metric, const CorpusCounts& corpus, const std::optional<Resampling>& how = {});

/// Two systems on the same sentences.
struct PairedScores {
  Score a, b;
  /// How probable a difference at least as large is, were there none: as `sacrebleu --paired-bs` has it, the
  /// share of draws whose difference exceeds the mean of all by more than the real one, which is itself counted
  /// among them. None where the scores are equal, of which sacreBLEU would say 1/(resamples + 1).
  std::optional<double> p;
};
PairedScores paired_scores(const Metric& metric, const CorpusCounts& a, const CorpusCounts& b,
                           const Resampling& how = {});

/// What one must know to compare a score, as sacreBLEU writes it:
/// nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:gradus-0.1.
/// @param references Each sentence's, 0 for a varying number.
std::string signature_of(const Metric& metric, int64_t references, const std::optional<Resampling>& how = {});

}  // namespace translator
