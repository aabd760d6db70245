#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <translator/text/metric.h>

namespace translator {

/// What becomes of an n-gram order without a match (Chen and Cherry 2014, W14-3346).
enum class Smoothing {
  /// the k-th such order counts as 1 / 2^k matches: NIST's and sacreBLEU's default
  exp,
  /// it counts as `value` matches (0.1)
  floor,
  /// `value` (1) is added to matches and totals of every order but the first
  add_k,
  /// the score is 0
  none,
};

struct BleuOptions {
  Smoothing smoothing = Smoothing::exp;
  /// for floor and add_k; negative: their default
  double smoothing_value = -1;
  bool lowercase = false;
  /// false: the sentences are tokens with spaces between them (`tok:none`)
  bool tokenize_13a = true;
  /// leave out the orders longer than the hypothesis: for single sentences
  bool effective_order = false;
  int max_order = 4;
};

/// BLEU and the counts it comes from. Percentages, as everywhere in translation.
struct BleuScore {
  double score = 0;
  /// clipped matches of each order
  std::vector<int64_t> correct;
  /// n-grams of the hypotheses
  std::vector<int64_t> total;
  /// percent, after smoothing
  std::vector<double> precisions;
  double brevity_penalty = 1;
  int64_t hypothesis_length = 0;
  /// of the closest references
  int64_t reference_length = 0;
  /// nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:gradus-0.1
  std::string signature;

  /// `77.4/69.2/57.1/38.9 (BP = 0.968 ratio = 0.969 hyp_len = 31 ref_len = 32)`, as sacreBLEU has it.
  std::string details() const;
};

/// The tokens of mteval-v13a as sacreBLEU has them, one space between: ASCII punctuation apart, but `.` `,`
/// between digits and apostrophes and hyphens within words stay; &quot; &amp; &lt; &gt; are undone, <skipped>
/// is dropped.
std::string tokenize_13a(std::string_view line);

/// BLEU (Papineni et al. 2002) exactly as sacreBLEU 2 computes it: clipped counts summed over the corpus,
/// brevity over the corpus with the closest reference of each sentence, the shorter of two equally close.
Metric bleu_metric(const BleuOptions& options = {});

/// The score of a corpus with the counts it comes from. Throws as `count` does.
BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references,
                      const BleuOptions& options = {});

/// The same with one reference each.
BleuScore corpus_bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
                      const BleuOptions& options = {});

}  // namespace translator
